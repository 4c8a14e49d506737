"""Reads times as monitoring programs and `date` print them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from teho.patterns import lazy_pattern

__all__ = ["Moment", "moment_of"]


class Moment(NamedTuple):
    """A time."""

    at_s: float
    """In s since 1970; without a date, in s since midnight."""
    has_zone: bool = True
    """False: the text has no time zone, and the zone of this machine was used."""
    has_date: bool = True


_MONTHS = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1
    )
}
_DAYS = frozenset({"mon", "tue", "wed", "thu", "fri", "sat", "sun"})
_HOURS = {
    "UTC": 0, "GMT": 0, "Z": 0, "WET": 0, "WEST": 1, "BST": 1, "CET": 1, "CEST": 2, "EET": 2,
    "EEST": 3, "EDT": -4, "CDT": -5, "MDT": -6, "PDT": -7, "AKDT": -8,
}  # fmt: skip
"""Names of time zones with one meaning in the output of `date`, and their hours before UTC."""
_CLOCK = lazy_pattern(r"(\d{1,2}):(\d\d):(\d\d(?:[.,]\d+)?)")
_NUMERIC = lazy_pattern(
    r"(\d{4})[-/]?(\d\d)[-/]?(\d\d)[T_\s]+(\d\d):?(\d\d):?(\d\d(?:[.,]\d+)?)\s*"
    r"(Z|[A-Z]{3,4}|[-+]\d\d:?\d\d)?"
)
_OFFSET = lazy_pattern(r"([-+])(\d\d):?(\d\d)")
_SINCE_1970 = lazy_pattern(r"\d{10}(?:[.,]\d+)?|\d{13}|\d{19}")
_PER_SECOND = {13: 1e3, 19: 1e9}
"""Number of digits -> ticks per second: `date +%s%3N` and `date +%s%N`."""


def moment_of(text: str) -> Moment | None:
    """Return the time in a text that is nothing but a time; None for any other text."""
    text = text.strip().strip('"')
    if _SINCE_1970.fullmatch(text):
        ticks_per_s = _PER_SECOND.get(len(text), 1.0) if text.isdecimal() else 1.0
        return Moment(float(text.replace(",", ".")) / ticks_per_s)
    if match := _NUMERIC.fullmatch(text):
        year, month, day, hour, minute, second, zone = match.groups()
        return _moment((int(year), int(month), int(day)), (hour, minute, second), zone or "")
    return _of_words(text) if len(text) <= _LONGEST else None


_LONGEST = 60
"""Characters of the longest output of `date`; a longer line is from another program."""


def _of_words(text: str) -> Moment | None:
    """Read the output of `date`, whose order depends on the language settings."""
    year = month = day = 0
    clock: tuple[str, str, str] | None = None
    half = zone = other = ""
    for word in text.replace(",", " ").split():
        small = word.lower()
        if match := _CLOCK.fullmatch(word):
            clock = (match[1], match[2], match[3])
        elif small in _MONTHS:
            month = _MONTHS[small]
        elif word.isdecimal() and len(word) == 4:
            year = int(word)
        elif word.isdecimal() and len(word) <= 2:
            day = int(word)
        elif small in {"am", "pm"}:
            half = small
        elif word in _HOURS or _OFFSET.fullmatch(word):
            zone = word
        elif word.isupper() and len(word) in {3, 4} and not other:
            other = word  # a time zone whose hours are not known
        elif small not in _DAYS:
            return None
    if clock is None:
        return None
    if half:
        hour = int(clock[0]) % 12 + (12 if half == "pm" else 0)
        clock = (str(hour), *clock[1:])
    date = (year, month, day)
    if not all(date):
        return _moment(None, clock, zone) if not any(date) else None
    return _moment(date, clock, zone)


def _moment(
    date: tuple[int, int, int] | None, clock: tuple[str, str, str], zone: str
) -> Moment | None:
    hours, minutes, seconds = int(clock[0]), int(clock[1]), float(clock[2].replace(",", "."))
    since_midnight = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if date is None:
        return Moment(since_midnight.total_seconds(), has_zone=False, has_date=False)
    offset = _offset(zone)
    try:
        # Without a zone, this is the clock of this machine, with its summer time.
        at = datetime(*date, tzinfo=offset) + since_midnight
        return Moment(at.timestamp(), has_zone=offset is not None)
    except (ValueError, OverflowError):
        return None


def _offset(zone: str) -> timezone | None:
    if zone in _HOURS:
        return timezone(timedelta(hours=_HOURS[zone]))
    match = _OFFSET.fullmatch(zone)
    if match is None:
        return None
    minutes = 60 * int(match[2]) + int(match[3])
    return timezone(timedelta(minutes=-minutes if match[1] == "-" else minutes))
