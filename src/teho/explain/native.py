"""Functions of programs that are not Python: where their CPU time went, and known causes."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from teho.config.toml import read_toml
from teho.explain.lines import share_interval
from teho.model.native import FunctionUse, NativeProgram
from teho.model.run import Node, Run
from teho.patterns import lazy_pattern

__all__ = [
    "NativeActivity",
    "NativeTime",
    "NativeUse",
    "activities",
    "caller_words",
    "label_of",
    "native_uses",
    "region_words",
    "times_of",
    "top_line",
]

LEAST_SAMPLES = 30
"""With fewer samples, the share of a function is too uncertain: 19 samples are one second of CPU
time."""
_SURELY = 0.5
"""Part of the least share above which the lower end of the 95 % interval must be."""
_FILE = Path(__file__).with_name("native_activities.toml")
_UNNAMED = lazy_pattern(r".\+0x[0-9a-f]+$")
_REGION = lazy_pattern(
    r"(?P<name>.+?)(?:\._omp_fn\.\d+|\.omp_outlined(?:\.\d+)?|\.DIR\.OMP\..*|\.extracted.*)$"
)
"""How compilers name the parallel regions of a function: GCC, LLVM and Intel."""


class NativeActivity(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of `native_activities.toml`."""

    name: str
    functions: str
    """Pattern for the name of the function, as a whole."""
    files: str
    """Pattern for the name of its file, as a whole."""
    threads: Literal["several", "any"] = "any"
    """`several`: at least two threads of one process must have been in these functions."""
    only_main: bool = False
    """Whether only the samples of main threads count."""
    atomic: bool = False
    """Whether only the samples just after an atomic update count."""
    own_program: bool = True
    """Whether the advice only helps a person who can change the program's source."""
    least_percent: float
    """Least share of the program's samples."""
    sentence: str
    """Text of the finding; `{program}`, `{function}`, `{caller}` and `{share}` are replaced."""
    advice: str
    regain: tuple[float, float]
    """Least and most part of this time that the advice usually saves. It may be above 1, because
    the samples do not have the time in the kernel."""
    certainty: Literal["likely", "possible"] = "likely"
    source: str
    """Document or measurement from which this is known."""


class NativeUse(NamedTuple):
    """A program that is not Python, on one node."""

    node: Node
    program: NativeProgram
    ran_percent: float | None
    """Share of the run in which the program ran; None if it is not known."""

    @property
    def ran_s_percent(self) -> float:
        """The same, at most 100 %, and 100 % if it is not known."""
        return min(100.0, self.ran_percent or 100.0)


class NativeTime(NamedTuple):
    """The time of a program in an activity."""

    activity: NativeActivity
    functions: tuple[FunctionUse, ...]
    """Longest first."""
    share_percent: float
    """Of the program's samples; of the samples of its main threads if only these count."""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    activity: tuple[NativeActivity, ...]


@functools.lru_cache(maxsize=1)
def activities() -> tuple[NativeActivity, ...]:
    """Return the entries of `native_activities.toml`."""
    return msgspec.convert(read_toml(_FILE), _File).activity


def native_uses(run: Run) -> Iterator[NativeUse]:
    """Yield the programs that are not Python, with enough samples to judge."""
    for node in run.nodes:
        ran = {one.name: one.samples for one in node.programs}
        for program in node.native:
            if program.samples >= LEAST_SAMPLES:
                samples = ran.get(program.name)
                share = (
                    100 * samples / node.program_samples
                    if samples and node.program_samples
                    else None
                )
                yield NativeUse(node, program, share)


def times_of(program: NativeProgram) -> Iterator[NativeTime]:
    """Yield the known activities of a program that took enough of its time."""
    for activity in activities():
        if activity.own_program and program.is_installed:
            continue
        found = [one for one in program.functions if _fits(activity, one)]
        if not found or (activity.threads == "several" and not _is_parallel(program, found)):
            continue
        whole = program.main_samples if activity.only_main else program.samples
        own = sum(_samples(activity, one) for one in found)
        share = 100 * own / whole if whole else 0.0
        interval = share_interval(share, whole)
        if (
            interval
            and share >= activity.least_percent
            and interval[0] >= _SURELY * activity.least_percent
        ):
            found.sort(key=lambda one: -_samples(activity, one))
            yield NativeTime(activity, tuple(found), share)


def _samples(activity: NativeActivity, use: FunctionUse) -> int:
    if activity.atomic:
        return use.atomic_samples
    return use.main_samples if activity.only_main else use.samples


def _fits(activity: NativeActivity, use: FunctionUse) -> bool:
    return (not activity.atomic or use.atomic_samples > 0) and bool(
        re.fullmatch(activity.functions, use.function) and re.fullmatch(activity.files, use.file)
    )


def _is_parallel(program: NativeProgram, functions: Sequence[FunctionUse]) -> bool:
    """Return whether several threads of the same process were in one of these functions."""
    return any(one.threads > max(1, program.processes) for one in functions)


def label_of(use: FunctionUse) -> str:
    """Return the name of a function; of a function without a name, the name of its file."""
    return use.file if _UNNAMED.search(use.function) else use.function or use.file


def caller_words(function: str, line: str = "") -> str:
    """Return a function of the program in words: `main`, or `a parallel region of main`.

    Args:
        function: its name.
        line: the line in it, such as `model.c:63`, to be added in brackets; or empty.
    """
    region = _REGION.fullmatch(function)
    words = f"a parallel region of `{region['name']}`" if region else f"`{function}`"
    return f"{words} ({line})" if line else words


def region_words(run: Run, node: str) -> str:
    """Return the parallel region in which the programs of a node mostly ran, with its line.

    Args:
        run: the description of the recording.
        node: name of the node.

    Returns:
        Such as `a parallel region of main (model.c:40)`; empty if most of the time was not in one.
    """
    uses = [use.program for use in native_uses(run) if use.node.name == node]
    regions: dict[str, list[FunctionUse]] = {}
    for program in uses:
        for one in program.functions:
            name = one.caller or one.function
            if _REGION.fullmatch(name):
                regions.setdefault(name, []).append(one)
    samples = {name: sum(one.samples for one in own) for name, own in regions.items()}
    most = max(samples, key=lambda name: samples[name], default="")
    if not most or 2 * samples[most] < sum(program.samples for program in uses):
        return ""
    return caller_words(most, top_line(regions[most]))


def top_line(uses: Sequence[FunctionUse]) -> str:
    """Return the line with the most samples of some functions; empty if no line is known."""
    samples: Counter[str] = Counter()
    for use in uses:
        samples.update(use.lines)
    return max(samples, key=lambda line: samples[line], default="")
