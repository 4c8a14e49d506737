"""The results of an example in sentences: the verdict, and notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from statistics import median

from teho.bench.example import shown_group
from teho.bench.examples import LIBRARIES
from teho.bench.images import BY_TEHO_FEED
from teho.bench.judge import key_of
from teho.model.bench import Bench, Crossover, Measured, Timing
from teho.model.document import VerdictSeverity
from teho.units import format_bytes, format_rate

__all__ = [
    "UNITS",
    "bench_verdict",
    "is_sound",
    "known_peaks",
    "notes_of",
    "number_text",
    "of_placement",
    "peak_owner",
    "place_text",
    "severity_of",
    "verdict_of",
    "verdict_pair",
]

_DRIFTED_PERCENT = 10.0
"""If samples slow down by more than this and the noise, something else has changed."""
_CUT_SHORT = {
    "slow": "ended because ten runs on a CPU take too long",
    "time": "cut short because the time was over: increase `--for`",
}
UNITS = {"flop": "FLOP/s", "bytes": "B/s", "items": "images/s"}
"""Units of the rates."""


def of_placement(name: str) -> str:
    """Return a placement as in a sentence: `2 cores`, `1 GPU`."""
    kind, _, count = name.partition(":")
    noun = "GPU" if kind == "gpu" else "core"
    return f"{count} {noun}{'' if count == '1' else 's'}"


def peak_owner(measured: Measured, placement: str) -> str:
    """Return the hardware with whose peak a placement's rates are compared."""
    return f"{'the link of ' if measured.figure == 'bytes' else ''}{of_placement(placement)}"


def place_text(axis: str, place: float) -> str:
    """Return a place on an axis as in a sentence: `3,000 systems`, `batch 512`, `16.0 MiB`."""
    if axis == "bytes":
        return format_bytes(place)
    if axis in {"batch", "size"}:
        return f"{axis} {number_text(place)}"
    return f"{number_text(place)} {axis.removesuffix('s') if place == 1 else axis}"


def number_text(value: float) -> str:
    """Return a whole number with all digits, and any other with two significant digits."""
    if value == int(value):
        return f"{value:,.0f}"
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"


def verdict_of(measured: Measured) -> str:
    """Return the sentence of the verdict, only about what was measured."""
    if not measured.timings:
        texts = [*(one.text for one in measured.participants), *(one.text for one in measured.left)]
        text = next(filter(None, texts), "")
        return f"No library could be timed{': ' if text else ''}{text}."
    parts = []
    if measured.figure in UNITS:
        parts.append(_rates(measured))
    parts += _crossings(measured)
    return " ".join(filter(None, parts)) or "No size was measured on more than one device."


def _rates(measured: Measured) -> str:
    """Return the highest rates: of each group for arithmetic, otherwise of each phase."""
    best: dict[str, Timing] = {}
    groups = _groups(measured)
    for timing in measured.timings:
        if timing.phase not in measured.phases or _rate(measured, timing) < 0:
            continue
        name = groups[key_of(timing.point)] if measured.figure == "flop" else timing.phase
        if name not in best or _rate(measured, timing) > _rate(measured, best[name]):
            best[name] = timing
    parts = [
        f"{name} {_rate_text(measured, timing)}{_where(measured, timing)}"
        f"{_share_of_peak(measured, timing)}"
        for name, timing in best.items()
    ]
    return f"Highest rates: {', '.join(parts)}." if parts else ""


def _where(measured: Measured, timing: Timing) -> str:
    """Return the batch size and the loader's settings of the highest rate of images."""
    if measured.figure != "items":
        return ""
    group = shown_group(_groups(measured)[key_of(timing.point)], timing.phase, timing.point)
    return f" at {place_text(measured.axis, timing.point[measured.axis])}{_listed([group])}"


def _share_of_peak(measured: Measured, timing: Timing) -> str:
    if not timing.peak_percent:
        return ""
    peak = format_rate(_peak(measured, timing, timing.peak_percent), UNITS[measured.figure])
    owner = "its link's" if measured.figure == "bytes" else "its"
    return f" ({number_text(timing.peak_percent)} % of {owner} peak, {peak})"


def _peak(measured: Measured, timing: Timing, percent: float) -> float:
    return _rate(measured, timing) * 100 / percent


def known_peaks(measured: Measured, phases: Collection[str]) -> dict[tuple[str, str], float]:
    """Return the known peaks of devices, by placement and group.

    Args:
        measured: an example. If it shows times, it has no peaks.
        phases: with the same unit, FLOP/s or B/s.
    """
    if measured.figure not in UNITS:
        return {}
    groups = _groups(measured)
    return {
        (one.placement, groups[key_of(one.point)]): _peak(measured, one, one.peak_percent)
        for one in measured.timings
        if one.phase in phases and one.peak_percent
    }


def _rate_text(measured: Measured, timing: Timing) -> str:
    rate, unit = _rate(measured, timing), UNITS[measured.figure]
    if measured.figure == "items":  # without a prefix
        return f"{rate:,.0f} {unit}" if rate >= 999.5 else f"{rate:.3g} {unit}"
    return format_rate(rate, unit)


def _groups(measured: Measured) -> dict[str, str]:
    """Return the group of each point, by `key_of` the point."""
    return {key_of(point): group for group, points in measured.groups.items() for point in points}


def _rate(measured: Measured, timing: Timing) -> float:
    found: float | None = getattr(timing, f"{measured.figure}_per_s")
    return -1.0 if found is None else found


def _crossings(measured: Measured) -> list[str]:
    """Return a sentence for each phase: from which point on the faster placement is ahead."""
    pair = verdict_pair(measured)
    if pair is None:
        return []
    phases: dict[str, list[Crossover]] = {}
    for one in measured.crossovers:
        if (one.slow, one.fast) == pair and not one.phase.endswith(BY_TEHO_FEED):
            phases.setdefault(one.phase, []).append(one)
    found = [
        f"{phase.capitalize()}: {_crossing(measured.axis, own)}." for phase, own in phases.items()
    ]
    return found if pair[1].startswith("gpu") else found[:1]


def _crossing(axis: str, own: list[Crossover]) -> str:
    """Return the crossovers of one phase, for all groups."""
    slow, fast = of_placement(own[0].slow), of_placement(own[0].fast)
    if own[0].slow_phase:
        slow = f"{slow} ({own[0].slow_phase})"
    is_one = fast.startswith("1 ")
    if all(one.outcome == "never" for one in own):
        verb = "is" if is_one else "are"
        return f"{fast} {verb} not clearly faster than {slow}, {_times(axis, own)}"
    return f"{fast} {'beats' if is_one else 'beat'} {slow} {_clauses(axis, own)}"


def verdict_pair(measured: Measured) -> tuple[str, str] | None:
    """Return the two placements of the verdict: a GPU, else all cores, is the second."""
    pairs = [(one.slow, one.fast) for one in measured.crossovers]
    on_gpu = [pair for pair in pairs if pair[1].startswith("gpu")]
    return on_gpu[-1] if on_gpu else pairs[0] if pairs else None


def _clauses(axis: str, own: list[Crossover]) -> str:
    alike: dict[str, list[Crossover]] = {}
    for one in sorted(own, key=lambda one: one.outcome == "never"):
        alike.setdefault(_from(axis, one), []).append(one)
    return "; ".join(
        f"{place}, {_times(axis, some)}{_listed([one.group for one in some])}"
        for place, some in alike.items()
    )


def _from(axis: str, one: Crossover) -> str:
    words = {"always": "at all sizes", "never": "not clearly faster"}
    return words.get(one.outcome) or f"from {place_text(axis, one.high or 0.0)} on"


def _times(axis: str, own: list[Crossover]) -> str:
    """Return the speed-up at the largest point: `1.2 to 2 times as fast at …`."""
    found = sorted(one.times for one in own)
    times = " to ".join(dict.fromkeys(map(number_text, (found[0], found[-1]))))
    lasts = {one.last for one in own}
    at = place_text(axis, lasts.pop()) if len(lasts) == 1 else "the largest size"
    return f"{'equally' if times == '1' else f'{times} times as'} fast at {at}"


def _listed(groups: list[str]) -> str:
    between = " and " if any("," in group for group in groups) else ", "
    return f" ({between.join(groups)})" if any(groups) else ""


def notes_of(measured: Measured) -> list[str]:
    """Return sentences about missing results, noise and throttling."""
    return [
        *_absent(measured),
        *_feeds(measured),
        *_agreement(measured),
        *_ends(measured),
        *_noise(measured.timings),
        *_throttling(measured.timings),
    ]


def _absent(measured: Measured) -> Iterable[str]:
    timed = {(one.library, one.placement) for one in measured.timings}
    absent: dict[tuple[str, str], list[str]] = {}
    for one in measured.participants:
        if one.why and (one.library, one.placement) not in timed:
            absent.setdefault((one.library, one.text), []).append(of_placement(one.placement))
    for (library, text), placements in absent.items():
        yield f"{LIBRARIES[library]} on {', '.join(placements)} is not compared: {text}."


def _feeds(measured: Measured) -> Iterable[str]:
    timed = {one.phase for one in measured.timings}
    if "host memory" in timed and "on the device" in {*measured.phases} - timed:
        yield (
            "Without a GPU, there are no rows for data in GPU memory and for GPU use. For a CPU, "
            "host memory and device memory are the same memory."
        )


def _agreement(measured: Measured) -> Iterable[str]:
    if not measured.agreements:
        return
    right = [one for one in measured.agreements if one.agrees]
    by = measured.agreements[0].reference.partition(" ")[0]
    wrong = len(measured.agreements) - len(right)
    if wrong:
        yield f"{wrong} of {len(measured.agreements)} results differ from {LIBRARIES[by]}'s."
        return
    worst = max(right, key=lambda one: (one.error or 0.0) / (one.tolerance or 1.0))
    yield (
        f"{len(right)} of {len(right)} results agree with {LIBRARIES[by]}'s: the largest "
        f"difference is {worst.error:.1g} of the largest value, and {worst.tolerance:.1g} is "
        f"allowed."
    )


def _ends(measured: Measured) -> Iterable[str]:
    groups = _groups(measured)
    lacking: dict[tuple[str, str, str], dict[str, None]] = {}
    for one in measured.left:
        group = groups[key_of(one.point)]
        if one.why == "unsupported":
            device = "GPU" if one.placement.startswith("gpu") else "CPU"
            libraries = lacking.setdefault((group, device, one.text), {})
            libraries[LIBRARIES[one.library]] = None
        elif one.why not in {"time", "slow"}:
            place = place_text(measured.axis, one.point[measured.axis])
            what = "memory is full" if one.why == "memory" else "the measurement ends"
            yield (
                f"{LIBRARIES[one.library]} on {of_placement(one.placement)}: {what} at {place}"
                f"{f' of {group}' if group else ''}: {one.text}."
            )
    for (group, device, text), libraries in lacking.items():
        yield f"{group} on the {device} was not measured with {', '.join(libraries)}: {text}."
    for why, words in _CUT_SHORT.items():
        if count := sum(one.why == why for one in measured.left):
            yield f"{count} series of sizes {'was' if count == 1 else 'were'} {words}."


def _noise(timings: tuple[Timing, ...]) -> Iterable[str]:
    known = [one.noise_percent for one in timings if one.noise_percent is not None]
    if known:
        yield (
            f"The error of the median times is typically ±{median(known):.1f} %, and at most "
            f"±{number_text(max(known))} % (with 95 % confidence)."
        )
    few = sum(one.samples < 10 for one in timings)
    if few:
        yield f"{few} of {len(timings)} timings took too long to be repeated 10 times."
    drifted = [
        one
        for one in timings
        if one.drift_percent is not None
        and one.drift_percent > max(_DRIFTED_PERCENT, one.noise_percent or 0.0)
    ]
    if drifted:
        yield (
            f"{len(drifted)} of {len(timings)} timings became slower by {_DRIFTED_PERCENT:.0f} "
            f"% or "
            "more while they were taken: another program ran, or clock rates went down."
        )


def _throttling(timings: tuple[Timing, ...]) -> Iterable[str]:
    on_gpu = [one for one in timings if one.placement.startswith("gpu")]
    found = Counter(
        word
        for one in on_gpu
        for word, percent in (
            ("heat", one.thermal_throttle_percent),
            ("its power cap", one.power_throttle_percent),
        )
        if percent
    )
    for word, count in found.items():
        yield f"The GPU was slowed by {word} in {count} of {len(on_gpu)} timings."
    if on_gpu and all(one.thermal_throttle_percent is None for one in on_gpu):
        yield (
            "It is not known if the GPU was slowed by heat, because the driver does not report "
            "this."
        )


def is_sound(measured: Measured) -> bool:
    """Return whether an example was timed, and all results agree."""
    return bool(measured.timings) and all(one.agrees for one in measured.agreements)


def severity_of(measured: Measured) -> VerdictSeverity:
    """Return the severity of an example's verdict."""
    if not measured.timings:
        return "unknown"
    return "good" if is_sound(measured) else "critical"


def bench_verdict(bench: Bench) -> tuple[VerdictSeverity, str]:
    """Return the severity and the sentence of the verdict on all examples."""
    if len(bench.results) == 1:
        return severity_of(bench.results[0]), bench.results[0].verdict
    severities = [severity_of(measured) for measured in bench.results]
    count = len(severities)
    if "critical" in severities:
        return "critical", f"{severities.count('critical')} of {count} examples have wrong results."
    if "unknown" in severities:
        return "unknown", f"{severities.count('unknown')} of {count} examples could not be timed."
    return "good", f"{count} examples were timed, and their results agree."
