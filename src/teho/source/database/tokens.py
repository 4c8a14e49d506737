"""The words, names, values and signs of SQL statements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from teho.patterns import lazy_pattern

__all__ = ["CLAUSES", "JOINS", "NOT_READ", "Token", "closing", "deeper", "parts_of", "tokens"]

_TOKEN = lazy_pattern(
    r"""(?isx) (?P<skip> \s+ | --[^\n]* | /\*.*?\*/ )
    | (?P<value> '(?:[^']|'')*' | \d[\w.]* | \?\d* | [:@$]\w+ | %s | %\(\w+\)s | \0 )
    | (?P<name> "[^"]*" | `[^`]*` | \[\w+\] )
    | (?P<word> [^\W\d]\w* )
    | (?P<sign> <=>? | >= | <> | != | == | \|\| | :: | . )"""
)
CLAUSES = frozenset(
    (
        *("FROM", "SET", "WHERE", "GROUP", "ORDER", "LIMIT", "HAVING", "WINDOW", "OFFSET", "FETCH"),
        *("FOR", "RETURNING"),
    )
)
"""Words that begin a clause of a query."""
NOT_READ = frozenset(
    ("SELECT", "UNION", "INTERSECT", "EXCEPT", "WITH", "EXISTS", "OR", "CASE", "USING", "NATURAL")
)
JOINS = frozenset(("INNER", "LEFT", "OUTER", "CROSS"))
_KEYWORDS = frozenset(
    (
        *("AND", "NOT", "IN", "IS", "NULL", "BETWEEN", "LIKE", "GLOB", "ON", "AS", "JOIN"),
        *("COLLATE", "ESCAPE", "RIGHT", "FULL", "INDEXED", "TABLESAMPLE", "LATERAL", "ONLY"),
    )
)
_NO_NAMES = _KEYWORDS | CLAUSES | NOT_READ | JOINS


class Token(NamedTuple):
    """A word, a name in quotes, a value, or a sign."""

    kind: str
    text: str

    def is_word(self, *words: str) -> bool:
        """Return whether it is one of some keywords, which are given in capital letters."""
        return self.kind == "word" and self.text.upper() in words

    @property
    def is_name(self) -> bool:
        """Whether it may be the name of a table, a column or a function."""
        return self.kind == "name" or (self.kind == "word" and self.text.upper() not in _NO_NAMES)

    @property
    def name(self) -> str:
        """The name in small letters, without quotes."""
        text = self.text[1:-1] if self.kind == "name" else self.text
        return text.lower()


def tokens(text: str) -> list[Token]:
    """Return the tokens of some SQL, without comments."""
    found = _TOKEN.finditer(text)
    return [Token(one.lastgroup, one[0]) for one in found if one.lastgroup not in (None, "skip")]


def closing(given: Sequence[Token], begin: int) -> int | None:
    """Return where the bracket is closed that a token opens; None: it is not closed."""
    depth = 0
    for place in range(begin, len(given)):
        depth += deeper(given[place])
        if not depth:
            return place
    return None


def parts_of(given: Sequence[Token], *between: str) -> Iterator[list[Token]]:
    """Yield the parts of some tokens between signs or words that are outside of brackets."""
    part: list[Token] = []
    depth = 0
    for one in given:
        depth += deeper(one)
        if not depth and (one.text in between or one.is_word(*between)):
            yield part
            part = []
        else:
            part.append(one)
    yield part


def deeper(one: Token) -> int:
    """Return 1 if a token opens a bracket, -1 if it closes one, or 0."""
    return {"(": 1, ")": -1}.get(one.text, 0)
