"""Read quantities from text, and write them as text.

Numbers inside Teho are floats and ints whose name ends in their unit (`elapsed_s`, `memory_bytes`,
`energy_j`).
"""

from __future__ import annotations

import math
import re
from typing import TypeVar

from teho.errors import UnitError
from teho.patterns import lazy_pattern

__all__ = [
    "GIB",
    "J_PER_WH",
    "MIB",
    "convert",
    "counted",
    "format_bytes",
    "format_clock",
    "format_count",
    "format_duration",
    "format_energy",
    "format_mib",
    "format_pace",
    "format_quantity",
    "format_rate",
    "format_time",
    "least",
    "many",
    "mib_text",
    "parse_bytes",
    "parse_duration",
    "parse_mib",
    "plural",
]

N = TypeVar("N", int, float)
MIB = 1024**2
GIB = 1024**3
J_PER_WH = 3600.0

_SECONDS = {
    "ms": 0.001,
    "s": 1.0,
    "sec": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "w": 604800.0,
}
# For Slurm, Grid Engine and most users, K, M, G and T are powers of 1024.
_BYTES: dict[str, int] = {
    "": 1,
    "b": 1,
    **{
        prefix + suffix: 1024**power
        for power, prefix in enumerate("kmgtp", start=1)
        for suffix in ("", "i", "ib")
    },
    **{prefix + "b": 1000**power for power, prefix in enumerate("kmgtp", start=1)},
}
_SHOWN = {
    ("bytes", "MiB"): 1024**2,
    ("bytes", "GiB"): GIB,
    ("bytes/s", "MiB/s"): 1024**2,
    ("bytes/s", "GiB/s"): GIB,
    ("J", "Wh"): J_PER_WH,
    ("s", "h"): 3600.0,
    ("s", "ms"): 1e-3,
    ("s", "µs"): 1e-6,
}
# No quantity has more digits, and Python limits the number of digits.
_NUMBER_AND_UNIT = lazy_pattern(r"\s*(\d{1,30}(?:\.\d*)?|\.\d+)(?!\d)\s*([A-Za-z]*)\s*", re.ASCII)
_CLOCK = lazy_pattern(r"(?:(\d{1,15})-)?(\d{1,15}):(\d{1,2})(?::(\d{1,2}))?", re.ASCII)


def parse_duration(text: str, what: str = "duration", *, bare_is_s: bool = False) -> float:
    """Read a length of time and return seconds.

    Accepts a number with a unit (`500ms`, `1.5h`, `30d`), several joined
    (`1h30m`), and the schedulers' clock forms `MM:SS`, `HH:MM:SS`, `D-HH:MM:SS`.

    Args:
        text: what the user typed.
        what: the name of the option or key, for the error.
        bare_is_s: whether a number without a unit means seconds, as in the output of schedulers.
            If not, a number without a unit is refused: a user may mean minutes or days.

    Raises:
        UnitError: the text is not a length of time, or has no unit.
    """
    expected = "a length of time such as 500ms, 1s, 10min, 1h30m, 30d or 1:30:00"
    clock = _CLOCK.fullmatch(text.strip())
    if clock:
        days, first, second, third = clock.groups()
        if third is None and days is None:
            return int(first) * 60.0 + int(second)
        return int(days or 0) * 86400.0 + int(first) * 3600.0 + int(second) * 60.0 + int(third or 0)
    stripped = text.strip()
    if not stripped:
        raise UnitError(f"{what}: empty", expected)
    total, position = 0.0, 0
    while position < len(stripped):
        match = _NUMBER_AND_UNIT.match(stripped, position)
        unit = match.group(2).lower() if match else ""
        is_bare = match is not None and unit == "" and match.span() == (0, len(stripped))
        if match is None or not (is_bare or unit in _SECONDS):
            raise UnitError(f"{what}: {text!r} is not a length of time", expected)
        if is_bare and not bare_is_s:
            raise UnitError(
                f"{what}: {text!r} has no unit",
                f"a unit, such as {stripped}s, {stripped}min or {stripped}d",
            )
        total += float(match.group(1)) * _SECONDS.get(unit, 1.0)
        position = match.end()
    return total


def parse_bytes(text: str, what: str = "size") -> int:
    """Read an amount of memory and return bytes.

    `K`, `M`, `G`, `T` and their `iB` forms are powers of 1024, as for schedulers; `kB`, `MB`, `GB`
    and `TB` are powers of 1000.

    Raises:
        UnitError: the text is not an amount of memory.
    """
    match = _NUMBER_AND_UNIT.fullmatch(text)
    factor = _BYTES.get(match.group(2).lower()) if match else None
    if match is None or factor is None:
        raise UnitError(
            f"{what}: {text!r} is not an amount of memory", "a size such as 512MiB, 64G or 1.5TiB"
        )
    return round(float(match.group(1)) * factor)


def parse_mib(text: str, what: str = "memory") -> int:
    """Read an amount of memory and return MiB, the unit of schedulers, rounded up.

    Raises:
        UnitError: the text is not an amount of memory.
    """
    return -(-parse_bytes(text, what) // MIB)


def least(*numbers: N | None) -> N | None:
    """Return the smallest known number. None: no number is known."""
    return min((number for number in numbers if number is not None), default=None)


def mib_text(mib: int) -> str:
    """Write MiB as `parse_mib` reads them: `64GiB`, `61500MiB`."""
    return f"{mib}MiB" if mib % 1024 or not mib else f"{mib // 1024}GiB"


def format_mib(mib: int) -> str:
    """Write MiB for people, without rounding: `64 GiB`, `61500 MiB`."""
    text = mib_text(mib)
    return f"{text[:-3]} {text[-3:]}"


def format_duration(seconds: float) -> str:
    """Write a length of time for people: `3.2 s`, `4 min 10 s`, `2 d 3 h`."""
    if seconds < 0:
        return "-" + format_duration(-seconds)
    if seconds < 0.00995:
        return f"{seconds * 1000:.1f}".removesuffix(".0") + " ms"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    for size, unit, step, smaller in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        # Rounded first: 59 min 59.7 s is written "1 h", not "59 min 60 s".
        rounded = round(seconds / step) * step
        if rounded >= size:
            first, rest = divmod(rounded, size)
            return f"{first} {unit} {rest // step} {smaller}" if rest else f"{first} {unit}"
    return f"{seconds:.0f} s"


def format_clock(seconds: float) -> str:
    """Write a length of time as `sacct` does: `HH:MM:SS`, with `D-` in front for days."""
    whole = round(seconds)
    days, rest = divmod(whole, 86400)
    text = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{days}-{text}" if days else text


def format_bytes(amount: float) -> str:
    """Write an amount of memory in the binary unit that fits: `512 MiB`, `16.7 GiB`."""
    value, units = float(amount), ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
    index = 0
    while abs(value) >= 1023.95 and index < len(units) - 1:
        value /= 1024
        index += 1
    return f"{value:.0f} B" if index == 0 else f"{_three_digits(value)} {units[index]}"


def format_energy(joules: float) -> str:
    """Write an energy in the unit that fits: `12 J`, `46.6 Wh`, `1.20 kWh`."""
    watt_hours = joules / J_PER_WH
    if abs(watt_hours) < 0.1:
        return f"{_three_digits(joules)} J"
    if abs(watt_hours) < 1000:
        return f"{_three_digits(watt_hours)} Wh"
    return f"{_three_digits(watt_hours / 1000)} kWh"


def format_rate(value: float, unit: str) -> str:
    """Write a rate in powers of 1000, as on datasheets: `3.35 TB/s`, `989 TFLOP/s`."""
    prefixes = ("", "k", "M", "G", "T", "P", "E")
    index = 0
    while abs(value) >= 999.5 and index < len(prefixes) - 1:
        value /= 1000
        index += 1
    return f"{_three_digits(value)} {prefixes[index]}{unit}"


def format_count(value: float) -> str:
    """Write a number: whole numbers without decimals, others with three significant digits."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return _three_digits(value)


def format_pace(per_s: float) -> str:
    """Write a number per second with three digits, without an exponent: `0.0123`, `1,234`."""
    if 0 < per_s < 1e-4:
        return _one_digit(per_s)
    return f"{per_s:,.0f}" if per_s >= 999.5 else f"{per_s:.3g}"


def plural(unit: str, amount: float) -> str:
    """Return a unit in singular or plural: `1 GPU-hour`, `1 core`, `26.2 steps/s`, `2 BU`."""
    if amount == 1 and unit in {"cores", "files", "samples", "tasks", "threads"}:
        return unit[:-1]
    if amount == 1 and unit == "steps/s":
        return "step/s"
    return f"{unit}s" if unit.endswith("hour") and amount != 1 else unit


def counted(number: int, noun: str) -> str:
    """Return a count with its noun: `1 node`, `2 nodes`, `3 batches`."""
    return f"{number} {noun if number == 1 else many(noun)}"


def many(noun: str) -> str:
    """Return the plural of a noun: `steps`, `batches`, `processes`."""
    return f"{noun}es" if noun.endswith(("ch", "ss")) else f"{noun}s"


def _three_digits(value: float) -> str:
    size = abs(value)
    if 0 < size < 0.005:
        return _one_digit(value)  # a value above zero must not be shown as zero
    return f"{value:,.{0 if size >= 99.95 else 1 if size >= 9.995 else 2}f}"


def _one_digit(value: float) -> str:
    """Write a number between 0 and 1 with one digit, without an exponent."""
    return f"{value:.{-math.floor(math.log10(abs(value)))}f}"


def convert(value: float, unit: str, shown_in: str) -> float:
    """Convert a number from a base unit to the unit in which it is shown.

    Raises:
        KeyError: the pair of units is unknown, which is a mistake in the code.
    """
    return value if shown_in in {"", unit} else value / _SHOWN[unit, shown_in]


def format_quantity(value: float, unit: str) -> str:
    """Write a number with its unit, as is usual for this unit.

    Args:
        value: the number, in `unit`.
        unit: `s`, `bytes`, `bytes/s`, `J`, `%`, `B/s` and `FLOP/s` (decimal, as on a datasheet), or
            any other unit, which follows the number.
    """
    if math.isnan(value):
        return "not a number"
    if unit == "s":
        return format_duration(value)
    if unit == "bytes":
        return format_bytes(value)
    if unit == "bytes/s":
        return format_bytes(value) + "/s"
    if unit == "J":
        return format_energy(value)
    if unit in {"B/s", "FLOP/s"}:
        return format_rate(value, unit)
    if unit == "%":
        return f"{value:.1f} %" if abs(value) < 9.95 else f"{value:.0f} %"
    if unit == "1/s":
        return f"{format_count(value)} per second"
    return f"{format_count(value)} {plural(unit, value)}".rstrip()


def format_time(seconds: float) -> str:
    """Write a short time with three digits: `12.3 µs`, `4.05 ms`, `2.10 s`."""
    for factor, unit in ((1e9, "ns"), (1e6, "µs"), (1e3, "ms")):
        if seconds * factor < 999.5:
            return f"{_three_digits(seconds * factor)} {unit}"
    return f"{_three_digits(seconds)} s"
