"""The words of a page: headings and facts lead to their definitions in a folded section."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from teho.config.toml import read_toml, to_noun
from teho.patterns import lazy_pattern
from teho.show.html.markup import folded, prose, text

__all__ = ["GLOSSARY", "Entry", "PageWords", "read_glossary"]

GLOSSARY = Path(__file__).parents[1] / "glossary.toml"


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A word of the glossary."""

    ids: list[str]
    """Names of the places on the page of the glossary; HTML reports use the first."""
    name: str
    text: str
    """The definition, in Markdown."""
    unit: str = ""
    labels: list[str] = []
    """Other headings and facts that lead here; `KEY:HEADING` only in the table with this key."""
    tables: list[str] = []
    """Keys of tables whose titles lead here."""


class _Glossary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    entry: list[Entry]


@cache
def read_glossary() -> list[Entry]:
    """Read the words, in the order of the page.

    Raises:
        InputError: the file was changed, and is not a glossary.
    """
    return to_noun(read_toml(GLOSSARY), _Glossary, GLOSSARY).entry


@cache
def _by_label() -> dict[str, Entry]:
    """Return each heading or fact in small letters, and `KEY:` of each table's title."""
    found: dict[str, Entry] = {}
    for entry in read_glossary():
        for label in (entry.name, *entry.labels):
            found[label.casefold()] = entry
        for key in entry.tables:
            found[f"{key}:"] = entry
    return found


class PageWords:
    """Collects the words that a page uses."""

    def __init__(self) -> None:
        self._used: dict[str, Entry] = {}

    def link(self, label: str, key: str = "") -> str:
        """Write a heading or a fact, as a link if the glossary has it.

        Args:
            label: the heading or fact, as plain text.
            key: of the table with this heading.
        """
        found = _by_label()
        low = label.casefold()
        return self._link(label, found.get(f"{key}:{low}") or found.get(low))

    def title(self, title: str, key: str) -> str:
        """Write the title of a table, as a link if the glossary has it."""
        return self._link(title, _by_label().get(f"{key}:"))

    @property
    def used(self) -> frozenset[str]:
        """The words that were used."""
        return frozenset(self._used)

    def add(self, used: frozenset[str]) -> None:
        """Add words that another process used."""
        self._used |= {entry.ids[0]: entry for entry in read_glossary() if entry.ids[0] in used}

    def _link(self, label: str, entry: Entry | None) -> str:
        if entry is None or not label:
            return text(label)
        self._used[entry.ids[0]] = entry
        return f'<a class="word" href="#word-{entry.ids[0]}">{text(label)}</a>'

    def section(self) -> str:
        """Write the definitions of the words that were used, folded.

        A link to a definition opens the section, also without JavaScript.
        """
        own = [entry for entry in read_glossary() if entry.ids[0] in self._used]
        places = {name: entry.ids[0] for entry in own for name in entry.ids}
        entries = "".join(
            f'<div id="word-{entry.ids[0]}"><dt>{text(entry.name)}'
            f"{f' <small>{text(entry.unit)}</small>' if entry.unit else ''}</dt>"
            f"<dd>{_definition(entry.text, places)}</dd></div>\n"
            for entry in own
        )
        return folded("What the words mean", f'<dl class="words">{entries}</dl>' if own else "")


_LINK = lazy_pattern(r"\[([^\]]+)\]\(([^)]+)\)")
_EMPHASIS = lazy_pattern(r"\*([^*]+)\*")


def _definition(markdown: str, places: dict[str, str]) -> str:
    """Write a definition; a link leads to another definition of this page, or is only text."""
    parts: list[str] = []
    end = 0
    running = " ".join(markdown.split())
    for link in _LINK.finditer(running):
        place = places.get(link[2].removeprefix("#"))
        inner = prose(link[1])
        parts += [
            prose(running[end : link.start()]),
            f'<a href="#word-{place}">{inner}</a>' if place else inner,
        ]
        end = link.end()
    whole = "".join([*parts, prose(running[end:])])
    return _EMPHASIS.sub(r"<em>\1</em>", whole)
