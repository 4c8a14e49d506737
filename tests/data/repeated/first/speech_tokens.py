"""
verdict: same
stack:
  vocabulary(sys.argv[1], language="de")
  content_words(line, language)
  [w for w in line_words if w not in stop_words(lang)]
  stop_words(lang)
  [ending.sub("", entry.strip()) for entry in entries]
  ending.sub("", entry.strip())
call: stop_words(lang)
loop: for w in line_words | for line in handle
why: the condition of the comprehension reads the same stop-word file for each word
"""
import re
import sys
from collections import Counter

ending = re.compile(r"[|#].*$")


def stop_words(code):
    with open(f"stop/{code}.txt", encoding="utf-8") as entries:
        cleaned = [ending.sub("", entry.strip()) for entry in entries]
    return {c for c in cleaned if c}


def content_words(text, lang):
    line_words = re.findall(r"\w+", text.casefold())
    return [w for w in line_words if w not in stop_words(lang)]


def vocabulary(path, language):
    counts = Counter()
    n_lines = 0
    with open(path, encoding="utf-8") as handle:
        for line in handle:
            counts.update(content_words(line, language))
            n_lines += 1
    print(n_lines, "lines", file=sys.stderr)
    return counts


if __name__ == "__main__":
    for word, n in vocabulary(sys.argv[1], language="de").most_common(200):
        print(word, n)
