"""Searches with a regular expression of a whole list of texts, and other searches."""

from __future__ import annotations

import pytest

from source.stacks import stack_of
from teho.source.slow_calls.search import find_slow_calls

BOOK = r"""
class Book:
    def __init__(self, names):
        self.finder = re.compile(r"\b(?:" + "|".join(names) + r")\b")
    def add(self, line):
        for hit in self.finder.finditer(line):
            self.note(hit)
def main(lines, names):
    book = Book(names)
    for line in lines:
        book.add(line)
"""
BOOK_STACK = ("book.add(line)", "for hit in self.finder.finditer(line):")
PLAIN = r"""
WORDS = [line.strip() for line in open("words.txt")]
EDGE = r"\b"
def main(texts):
    pattern = re.compile(EDGE + "(" + "|".join(map(re.escape, WORDS)) + ")" + EDGE, re.IGNORECASE)
    for text in texts:
        found = pattern.findall(text)
"""
MADE = 're.compile(EDGE + "(" + "|".join(map(re.escape, WORDS)) + ")" + EDGE, re.IGNORECASE)'


def found(source, *stack):
    for one in find_slow_calls(*stack_of(source, *stack)):
        if one.name.endswith("_as_alternatives"):
            return one
    return None


def changed(source, *changes):
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in source
        source = source.replace(old, new)
    return source


def test_a_pattern_of_an_object():
    one = found(BOOK, *BOOK_STACK)
    assert one.name == "words_as_alternatives"
    assert one.at.text == r"""re.compile(r"\b(?:" + "|".join(names) + r")\b")"""
    assert one.words == {
        "names": "names",
        "known": "self.known",
        "use": "in the loop, skip each match with `if match.group() not in self.known: continue`",
        "search": "train.py:13",
    }


def test_a_pattern_with_a_name():
    one = found(PLAIN, "pattern.findall(text)")
    assert one.name == "words_as_alternatives"
    assert (one.words["names"], one.words["known"]) == ("WORDS", "known")


@pytest.mark.parametrize(
    ("source", "stack"),
    [
        (
            changed(PLAIN, "pattern.findall(text)", "re.findall(pattern, text)"),
            ("re.findall(pattern, text)", "lib:re/__init__.py:findall"),
        ),
        (
            changed(PLAIN, "pattern.findall(text)", 're.sub("|".join(sorted(WORDS)), "", text)'),
            ('re.sub("|".join(sorted(WORDS)), "", text)', "lib:re/__init__.py:sub"),
        ),
        (
            changed(
                PLAIN, "    pattern =", "    parts = [re.escape(w) for w in WORDS]\n    pattern =",
                '"|".join(map(re.escape, WORDS))', "'|'.join(parts)",
            ),
            ("pattern.findall(text)",),
        ),
        (
            changed(
                PLAIN, "found = pattern.findall(text)", "marked(pattern, text)", "def main(",
                "def marked(rule, text):\n    return rule.search(text)\ndef main(",
            ),
            ("marked(pattern, text)", "rule.search(text)"),
        ),
        (
            changed(PLAIN, 'EDGE + "(" + "|".join(map(re.escape, WORDS)) + ")" + EDGE',
                    "f\"(?:{'|'.join(WORDS)})\""),
            ("pattern.findall(text)",),
        ),
    ],
)  # fmt: skip
def test_other_searches(source, stack):
    assert found(source, *stack) is not None


def test_parts_of_words_need_another_way():
    source = changed(PLAIN, 'r"\\b"', '""')
    assert found(source, "pattern.findall(text)").name == "texts_as_alternatives"


@pytest.mark.parametrize(
    ("source", "stack"),
    [
        # A short list.
        (changed(PLAIN, '[line.strip() for line in open("words.txt")]', '["a", "b", "c"]'),
         ("pattern.findall(text)",)),
        # No alternatives.
        (changed(PLAIN, '"|".join', '"".join'), ("pattern.findall(text)",)),
        (changed(PLAIN, '"|".join(map(re.escape, WORDS))', '"cat|dog"'),
         ("pattern.findall(text)",)),
        # Another pattern.
        (changed(BOOK, "self.finder.finditer(line)", "self.other.finditer(line)"),
         (BOOK_STACK[0], "for hit in self.other.finditer(line):")),
        (changed(BOOK, "def add(self, line):", "def add(self, line):\n        self.finder = WORD"),
         BOOK_STACK),
        # The line searches, but a function of the program takes the time.
        (changed(PLAIN, "pattern.findall(text)", "[mark(one) for one in pattern.findall(text)]",
                 "def main(", "def mark(one):\n    return one.strip()\ndef main("),
         ("mark(one)", "one.strip()")),
        # A table is searched.
        (changed(PLAIN, "pattern.findall(text)", "text.str.contains(pattern)"),
         ("text.str.contains(pattern)", "lib:pandas/core/strings/accessor.py:contains")),
        # The pattern is made, not searched.
        (PLAIN, (MADE, "lib:re/__init__.py:compile")),
    ],
)  # fmt: skip
def test_look_alikes(source, stack):
    assert found(source, *stack) is None
