"""Read Grid Engine's configuration with `qconf`, which any user may run.

`qhost` reports the free amount of a consumable, and `qconf -se` the total amount. So `qconf` is
asked about each host.
"""

from __future__ import annotations

import re

import msgspec

from teho.errors import RefusedError
from teho.patterns import lazy_pattern
from teho.schedulers.inventory import Ask, answer_of

__all__ = [
    "Complex",
    "GridEngineAnswers",
    "QuotaText",
    "Settings",
    "answers_of",
    "listed",
    "settings_of",
]

_OVERRIDE = lazy_pattern(r",?\[([^=\]]+)=([^\]]*)\]")
_RULE = lazy_pattern(r"(?:name\s+\S+\s+)?(?P<filters>.*?)\s*\bto\s+(?P<limits>\S.*)", re.DOTALL)
_FILTER = lazy_pattern(r"\b(users|projects|pes|queues|hosts)\s+(\{[^}]*\}|\S+(?:\s*,\s*\S+)*)")

Settings = dict[str, str]


class Complex(msgspec.Struct, frozen=True):
    """One attribute of `qconf -sc` (complex(5))."""

    type: str
    requestable: str
    consumable: str
    default: str


class QuotaText(msgspec.Struct, frozen=True):
    """One rule of a set of resource quotas (sge_resource_quota(5)), as it is written."""

    name: str
    """Name of the set."""
    filters: dict[str, tuple[str, ...]]
    """`users`, `projects`, `pes`, `queues`, `hosts`: the names."""
    each: frozenset[str]
    """Filters in braces: the limit applies to each of their names separately."""
    limits: Settings


class GridEngineAnswers(msgspec.Struct, frozen=True):
    """The whole configuration."""

    queues: dict[str, Settings]
    hosts: dict[str, Settings]
    groups: dict[str, tuple[str, ...]]
    """Hosts of each host group."""
    complexes: dict[str, Complex]
    environments: dict[str, Settings]
    """Parallel environments, by name."""
    config: Settings
    quotas: tuple[QuotaText, ...]
    """The rules of all enabled sets."""
    version: str

    def hosts_of(self, queue: str) -> list[str]:
        """Return the hosts of a queue."""
        names = [
            name
            for word in re.split(r"[\s,]+", self.queues[queue].get("hostlist", ""))
            for name in self.groups.get(word, (word,))
        ]
        return [name for name in dict.fromkeys(names) if name in self.hosts]

    def of_host(self, queue: str, key: str, host: str, default: str = "") -> str:
        """Return a queue's setting on one host: `1,[node1=40],[@gpu=8]`."""
        text = self.queues[queue].get(key, default)
        value = _OVERRIDE.sub("", text)
        for target, own in _OVERRIDE.findall(text):
            if host in self.groups.get(target, (target,)):
                value = own
        return value

    def of_queue(self, queue: str, key: str, default: str = "") -> str:
        """Return a queue's setting without the values for single hosts."""
        return _OVERRIDE.sub("", self.queues[queue].get(key, default))


def answers_of(ask: Ask) -> GridEngineAnswers:
    """Ask for the whole configuration.

    Raises:
        SchedulerError: Grid Engine does not answer.
    """

    def settings(*argv: str) -> Settings:
        return settings_of(answer_of(ask, "qconf", *argv))

    def names(option: str) -> list[str]:
        try:
            return answer_of(ask, "qconf", option).split()
        except RefusedError:  # No object of this type exists.
            return []

    queues = {name: settings("-sq", name) for name in names("-sql")}
    sets = names("-srqsl")
    quotas = [rule for name in sets for rule in _rules(answer_of(ask, "qconf", "-srqs", name))]
    wanted = {
        group
        for text in (*map(str, queues.values()), *(str(one.filters) for one in quotas))
        for group in re.findall(r"@[\w.-]+", text)
    }
    known = set(names("-shgrpl"))
    return GridEngineAnswers(
        queues=queues,
        hosts={name: settings("-se", name) for name in names("-sel")},
        groups={
            group: tuple(answer_of(ask, "qconf", "-shgrp_resolved", group).split())
            for group in sorted(wanted & known)
        },
        complexes=_complexes(answer_of(ask, "qconf", "-sc")),
        environments={name: settings("-sp", name) for name in names("-spl")},
        config=settings("-sconf"),
        quotas=tuple(quotas),
        version=answer_of(ask, "qconf", "-help").partition("\n")[0].removeprefix("SGE").strip(),
    )


def settings_of(text: str) -> Settings:
    """Read `key value` lines. A backslash at the end joins the next line."""
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    pairs = (line.split(None, 1) for line in lines if line and not line.startswith("#"))
    return {pair[0]: pair[1].strip() if len(pair) > 1 else "" for pair in pairs if pair}


def listed(text: str) -> tuple[str, ...]:
    """Read a list of names, separated by spaces or commas. `NONE` is an empty list."""
    return tuple(name for name in re.split(r"[\s,]+", text) if name and name.upper() != "NONE")


def _complexes(text: str) -> dict[str, Complex]:
    """Read `qconf -sc`: name, shortcut, type, relop, requestable, consumable, default, urgency."""
    rows = (line.split() for line in text.splitlines() if line and not line.startswith("#"))
    return {row[0]: Complex(row[2], row[4], row[5], row[6]) for row in rows if len(row) >= 7}


def _rules(text: str) -> list[QuotaText]:
    """Read one set of resource quotas; empty: the set is not enabled."""
    lines = [
        line.split(None, 1)
        for line in re.sub(r"\\\n\s*", " ", text).splitlines()
        if len(line.split(None, 1)) == 2
    ]
    about = {line[0]: line[1].strip() for line in lines if line[0] != "limit"}
    if about.get("enabled", "FALSE").upper() != "TRUE":
        return []
    rules = (_rule(about.get("name", ""), line[1]) for line in lines if line[0] == "limit")
    return [rule for rule in rules if rule is not None]


def _rule(name: str, text: str) -> QuotaText | None:
    match = _RULE.fullmatch(text.strip())
    if match is None:
        return None
    found = dict(_FILTER.findall(match["filters"]))
    items = (item.partition("=") for item in match["limits"].split(","))
    return QuotaText(
        name=name,
        filters={key: listed(words.strip("{}")) for key, words in found.items()},
        each=frozenset(key for key, words in found.items() if words.startswith("{")),
        limits={key.strip(): value.strip() for key, _, value in items},
    )
