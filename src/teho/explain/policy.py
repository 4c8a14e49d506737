"""The thresholds of all rules: the shipped values, and the values of a site's file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import TypeVar, Union

import msgspec

from teho.config.settings import Settings, expanded
from teho.config.toml import did_you_mean, read_toml
from teho.errors import InputError
from teho.explain.registry import RULES
from teho.explain.rule import kind_of
from teho.explain.shared_thresholds import EVERY_RULE, SHARED
from teho.model.finding import Threshold

__all__ = ["Policy", "load_policy", "policy_of"]

_T = TypeVar("_T")

_VERIFIED_ON = date(2026, 11, 20)
_META = "meta"
"""A section without thresholds that files may have."""
_NEXT = "correct the file: docs/rules.md lists all rules and thresholds"


class Policy(msgspec.Struct, frozen=True):
    """All thresholds, rule by rule."""

    verified_on: date
    """Day on which the sources of the shipped values were last checked."""
    thresholds: dict[str, dict[str, Threshold]]

    def of(self, kind: str) -> Mapping[str, Threshold]:
        """Return the thresholds of a rule, and the thresholds that all rules share.

        Raises:
            KeyError: the kind is unknown (a mistake in the code).
        """
        return {**self.thresholds[EVERY_RULE], **self.thresholds[kind]}


SHIPPED = Policy(
    verified_on=_VERIFIED_ON,
    thresholds={name: dict(section) for name, section in SHARED.items()}
    | {kind_of(rule): dict(rule.THRESHOLDS) for rule in RULES},
)


class _Override(msgspec.Struct, frozen=True):
    """A threshold in a site's file, in its long form."""

    value: float
    unit: Union[str, None] = None
    source: Union[str, None] = None


def policy_of(settings: Settings) -> Policy:
    """Return the thresholds for a user's settings.

    Raises:
        InputError: as `load_policy`.
    """
    path = settings.thresholds
    return load_policy(expanded(path) if path else None)


def load_policy(override: Path | None = None) -> Policy:
    """Return the shipped thresholds, with the values of a site's file.

    Args:
        override: a TOML file with a section for each rule. A threshold is a bare number, or a
            table with `value` and, if wanted, `source` and `unit`.

    Raises:
        InputError: the file cannot be read or is not TOML; it has an unknown rule, threshold, key
            or unit, or a value that is not a number.
    """
    if override is None:
        return SHIPPED
    merged = {kind: dict(limits) for kind, limits in SHIPPED.thresholds.items()}
    for kind, section in read_toml(override).items():
        if kind == _META:
            continue
        limits = _known(merged, kind, "rule", override)
        if not isinstance(section, dict):
            raise _wrong(override, f"{kind} is {section!r}", "a section of thresholds")
        for name, given in section.items():
            old = _known(limits, name, f"threshold of {kind}", override)
            limits[name] = _replaced(old, given, f"{kind}.{name}", override)
    return Policy(verified_on=_VERIFIED_ON, thresholds=merged)


def _replaced(old: Threshold, given: object, key: str, path: Path) -> Threshold:
    number = f"a number ({old.unit})"
    if isinstance(given, dict):
        for name in given:
            _known(dict.fromkeys(_Override.__struct_fields__), name, f"key of {key}", path)
        try:
            new = msgspec.convert(given, _Override)
        except msgspec.ValidationError as error:
            raise _wrong(path, f"{key}: {error}", f"value = {number}") from error
    elif isinstance(given, (int, float)) and not isinstance(given, bool):
        new = _Override(value=float(given))
    else:
        raise _wrong(path, f"{key} is {given!r}", number)
    if not math.isfinite(new.value):
        raise _wrong(path, f"{key} is {new.value}", number)
    if new.unit not in {None, old.unit}:
        raise _wrong(path, f"{key} has the wrong unit {new.unit!r}", repr(old.unit))
    source = new.source or (old.source if new.value == old.value else f"set in {path}")
    return Threshold(new.value, old.unit, source)


def _known(table: Mapping[str, _T], name: str, what: str, path: Path) -> _T:
    if name not in table:
        raise InputError(f"{path}: unknown {what}: {name!r}{did_you_mean(name, table)}")
    return table[name]


def _wrong(path: Path, found: str, expected: str) -> InputError:
    return InputError(f"{path}: {found}", expected, _NEXT)
