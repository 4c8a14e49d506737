"""The limits that rules judge by: from `thresholds.toml`, and from a file that overrides it."""

from __future__ import annotations

import difflib
import functools
import math
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Any, Union

import msgspec

from teho.errors import InputError
from teho.model.finding import Threshold

__all__ = ["EVERY_RULE", "Policy", "load_policy"]

EVERY_RULE = "every_rule"
"""The section whose thresholds every rule sees beside its own."""

_META = "meta"
_DEFAULTS = Path(__file__).with_name("thresholds.toml")


class Policy(msgspec.Struct, frozen=True):
    """All thresholds, rule by rule."""

    verified_on: date
    """Day on which the sources of the shipped values were last read."""
    thresholds: dict[str, dict[str, Threshold]]

    def of(self, kind: str) -> Mapping[str, Threshold]:
        """Return the thresholds of one rule, with those of every rule.

        Raises:
            KeyError: no rule of that kind has thresholds (a mistake in the code).
        """
        return {**self.thresholds[EVERY_RULE], **self.thresholds[kind]}


class _Override(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A threshold in an overriding file, in its long form."""

    value: float
    unit: Union[str, None] = None
    source: Union[str, None] = None


def load_policy(override: Path | None = None) -> Policy:
    """Return the shipped thresholds, with single values replaced by those of a file.

    Args:
        override: a TOML file in the shape of `thresholds.toml`; a threshold is a bare
            number, or a table with `value` and, if wanted, `source`. A copy of
            `thresholds.toml` itself, edited, will do.

    Raises:
        InputError: the file cannot be read, is not TOML, or has an unknown rule,
            threshold or key, another unit, or something that is not a number.
    """
    shipped = _shipped()
    if override is None:
        return shipped
    merged = {kind: dict(limits) for kind, limits in shipped.thresholds.items()}
    for kind, section in _read(override).items():
        if kind == _META:
            continue
        limits = _known(merged, kind, f"{override}: unknown rule [{kind}]", override)
        if not isinstance(section, dict):
            raise InputError(
                f"{override}: {kind} is {section!r}", "a section of thresholds", _look(override)
            )
        for name, given in section.items():
            old = _known(limits, name, f"{override}: unknown threshold {kind}.{name}", override)
            limits[name] = _replaced(old, given, f"{kind}.{name}", override)
    return Policy(verified_on=shipped.verified_on, thresholds=merged)


@functools.cache
def _shipped() -> Policy:
    raw = _read(_DEFAULTS)
    meta = raw.pop(_META)
    return Policy(
        verified_on=meta["verified_on"],
        thresholds=msgspec.convert(raw, dict[str, dict[str, Threshold]]),
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        return msgspec.toml.decode(path.read_bytes(), type=dict[str, Any])
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror})", "", "check the path"
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a TOML file ({error})", "", _look(path)) from error


def _replaced(old: Threshold, given: object, key: str, path: Path) -> Threshold:
    if isinstance(given, dict):
        for name in given:
            fields = dict.fromkeys(_Override.__struct_fields__)
            _known(fields, name, f"{path}: unknown key {key}.{name}", path)
        try:
            new = msgspec.convert(given, _Override)
        except msgspec.ValidationError as error:
            raise InputError(f"{path}: {key}: {error}", "", _look(path)) from error
    elif isinstance(given, (int, float)) and not isinstance(given, bool):
        new = _Override(value=float(given))
    else:
        raise InputError(f"{path}: {key} is {given!r}", f"a number of {old.unit}", _look(path))
    if not math.isfinite(new.value):
        raise InputError(f"{path}: {key} is {new.value}", f"a number of {old.unit}", _look(path))
    if new.unit not in {None, old.unit}:
        raise InputError(f"{path}: {key} has the unit {new.unit!r}", repr(old.unit), _look(path))
    if new.source is None and new.value == old.value:
        return old
    return Threshold(new.value, old.unit, new.source or f"set in {path}")


def _known(table: Mapping[str, Any], name: str, found: str, path: Path) -> Any:
    if name in table:
        return table[name]
    near = difflib.get_close_matches(name, table, n=1)
    raise InputError(found, _one_of(near or sorted(table), did_you_mean=bool(near)), _look(path))


def _one_of(names: Iterable[str], *, did_you_mean: bool) -> str:
    listed = ", ".join(names)
    return f"{listed} (did you mean that?)" if did_you_mean else f"one of {listed}"


def _look(path: Path) -> str:
    return f"mend {path.name}; docs/rules.md lists every rule and threshold"
