"""
verdict: same
stack:
  tag_all("notes.jsonl", "drugs.txt")
  find_mentions(record["text"], lexicon)
  build_automaton(terms)
  machine.make_automaton()
call: build_automaton(terms)
loop: for line in handle
why: the search automaton of the unchanged lexicon is built in each call of find_mentions
"""
import json
from collections import Counter

import ahocorasick


def read_lexicon(path):
    with open(path) as source:
        return [row.strip() for row in source if row.strip()]


def build_automaton(words):
    machine = ahocorasick.Automaton()
    for word in words:
        machine.add_word(word.lower(), word)
    machine.make_automaton()
    return machine


def find_mentions(text, terms):
    machine = build_automaton(terms)
    return [(end - len(word) + 1, end, word) for end, word in machine.iter(text.lower())]


def tag_all(notes, lexicon_path):
    lexicon = read_lexicon(lexicon_path)
    counts = Counter()
    tagged = []
    with open(notes) as handle:
        for line in handle:
            record = json.loads(line)
            mentions = find_mentions(record["text"], lexicon)
            counts.update(name for _, _, name in mentions)
            tagged.append({"id": record["id"], "mentions": mentions})
    return tagged, counts


if __name__ == "__main__":
    result, totals = tag_all("notes.jsonl", "drugs.txt")
    print(totals.most_common(20))
