"""Searches the largest batch that fits into memory, and the fastest batch.

Memory is measured, not estimated: each size is tried in a run of its own. The size is doubled until
a run fails; then the gap between the largest good and the smallest bad size is halved.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from teho.config.privacy import masked_command
from teho.errors import InputError
from teho.experiment.attempt import Attempt
from teho.experiment.batch_wording import with_words
from teho.experiment.batches import batches_per_step, samples_per_batch
from teho.experiment.pace import FEWEST_STEPS
from teho.experiment.started import with_last_message
from teho.experiment.timed_runs import Run, TimedRuns
from teho.experiment.unmeasurable import no_baseline
from teho.model.batch_sizes import BatchSizes, BatchTry, Ended, Limit, MemoryUse
from teho.model.watched import Loader
from teho.units import counted, format_duration, format_pace

__all__ = ["find_batch_size", "next_between"]

_STEPS = 8
"""The search ends if the gap is at most this part of the size."""
_ALIKE = 1.05
"""Rates that differ by less count as equal, because each size has a single run."""
_PATIENCE = 3.0
"""Time limit of a run, relative to the expected time."""
_FEWEST_S = 20.0
"""A run has at least this time more than the unchanged program."""

_SUPPORTED = "a PyTorch program with `DataLoader(…, batch_size=…)`"
_BY_HAND = "record each size with `teho run -- COMMAND`, and read the peak memory in its report"


class _OutOfTimeError(Exception):
    """The time is over."""


class _Place(NamedTuple):
    """What the first run shows about the loader whose batch size is changed."""

    loader: Loader
    size: int
    most: int | None
    """Samples of the dataset; None: not known."""
    counts_samples: bool
    """Whether the first batch had the number of samples that its loader was given."""
    step_s: float
    """Time of a step; 0: not known."""


class _Search:
    def __init__(
        self, run: Run, for_s: float, clock: Callable[[], float], progress: Callable[[str], None]
    ) -> None:
        self.runs = TimedRuns(run, for_s, clock)
        self._progress = progress
        self.tries: list[BatchTry] = []

    # ---- runs ----

    def begin(self) -> Attempt:
        """Run the unchanged program.

        Raises:
            InputError: it has no batch size that can be changed, or it fails for another reason
                than memory.
        """
        base = self.runs({}, self.runs.for_s, None)
        error = None if base.out_of_memory else no_baseline(base, self.runs.for_s)
        # A few steps are enough to know whether a batch fits.
        if error and (base.exit_code or base.process is None or not base.unit):
            raise error
        self.base = base
        self.place = _place_of(base)
        self._note(self.place.size, base, self.place.loader)
        return base

    def measure(self, size: int) -> Ended:
        """Run the program with this batch size."""
        if not self.runs.affords(1):
            raise _OutOfTimeError
        left_s = self.runs.left_s
        # The time of the steps grows with the batch.
        steps_s = FEWEST_STEPS * self.place.step_s * size / self.place.size
        usual_s = self.base.elapsed_s + max(steps_s, _FEWEST_S / _PATIENCE)
        limit_s = min(left_s, _PATIENCE * usual_s)
        frame = self.place.loader.made_at
        made_at = (frame.file, frame.line) if frame else None
        attempt = self.runs({"batch_size": size}, limit_s, made_at)
        ended = self._note(size, attempt, _same(attempt, self.place.loader, size))
        if ended == "too_slow" and limit_s == left_s:
            raise _OutOfTimeError
        return ended

    def _note(self, size: int, attempt: Attempt, loader: Loader | None) -> Ended:
        ended, why = self._judged(size, attempt, loader)
        rate = _rate(attempt._replace(loader=loader)) if ended == "fits" else None
        if ended == "fits" and rate is None:
            why = f"the speed is not known: there was no steady step rate within {_took(attempt)}"
        # A run that fails has often not reached its peak when the memory is read.
        memory = attempt.memory if ended == "fits" else MemoryUse()
        one = BatchTry(batch_size=size, ended=ended, memory=memory, samples_per_s=rate, why=why)
        self.tries.append(one)
        pace = f"{format_pace(rate)} samples/s" if rate else ""
        self._progress(f"batch_size={size}: {why or pace}")
        return ended

    def _judged(self, size: int, attempt: Attempt, loader: Loader | None) -> tuple[Ended, str]:
        if attempt.out_of_memory:
            return "out_of_memory", attempt.out_of_memory
        if attempt.exit_code:
            last = "".join(attempt.raised[:1] or attempt.tail.splitlines()[-1:])
            return "failed", with_last_message(attempt.ended, last)
        if loader is None and attempt.loader:
            has = attempt.loader.settings.get("batch_size")
            return "failed", f"the loader did not accept batch_size={size}, and still uses {has}"
        got = loader.batch.get("samples") if loader else None
        if self.tries and self.place.counts_samples and got is not None and got < size:
            return "dataset", f"the first batch had only {counted(got, 'sample')}"
        is_over = attempt.exit_code == 0 and loader is not None and loader.batches > 0
        if attempt.pace is None and not is_over:
            return "too_slow", f"the program made fewer than 2 steps within {_took(attempt)}"
        return "fits", ""

    # ---- search ----

    def search(self) -> Limit:
        """Try sizes until the largest is known; return what ended the search."""
        good, bad = self.place.size, 0
        if self.tries[0].ended == "out_of_memory":
            good, bad = 0, self.place.size
        try:
            while True:
                size = next_between(good, bad) if bad else self._larger(good)
                if size is None:
                    return "memory" if bad else "dataset"
                if (ended := self.measure(size)) == "fits":
                    good = size
                elif ended == "out_of_memory":
                    bad = size
                else:
                    return ended
        except _OutOfTimeError:
            return "time"

    def _larger(self, good: int) -> int | None:
        """Return twice the size, or all samples; None if there are not more samples."""
        most = self.place.most
        if most is None or 2 * good <= most:
            return 2 * good
        step = _step(most)
        most = most // step * step
        return most if most > good + good // _STEPS else None


def _step(size: int) -> int:
    """Return the largest power of two that is at most an eighth of a size.

    From 64 on, all sizes that are tried are multiples of 8, as tensor cores want.
    """
    return 1 << max(0, (size // _STEPS).bit_length() - 1)


def next_between(good: int, bad: int) -> int | None:
    """Return the next size to try between two sizes; None if they are near enough.

    Args:
        good: it fits; 0: no size that fits is known.
        bad: it does not fit.
    """
    if not good:
        return bad // 2 or None
    if bad - good <= max(1, good // _STEPS):
        return None
    middle = (good + bad) // 2
    middle -= middle % _step(good)
    return middle if middle > good else None


def _place_of(base: Attempt) -> _Place:
    loader = base.loader
    settings = loader.settings if loader else {}
    if loader is None or loader.library != "torch":
        seen = "in the program" if not base.out_of_memory else "before memory ran out"
        raise InputError(f"no PyTorch DataLoader was seen {seen}", _SUPPORTED, _BY_HAND)
    frame, size = loader.made_at, settings.get("batch_size")
    place = f" at {frame.file}:{frame.line}" if frame else ""
    if "batch_sampler" in settings:
        raise InputError(
            f"the DataLoader{place} gets its batches from a batch_sampler", _SUPPORTED, _BY_HAND
        )
    if not isinstance(size, int):
        raise InputError(f"the DataLoader{place} has batch_size={size}", _SUPPORTED, _BY_HAND)
    return _Place(
        loader=loader,
        size=size,
        most=settings.get("samples"),
        counts_samples=loader.batch.get("samples") == size,
        step_s=1 / base.pace.steps_per_s if base.pace else 0.0,
    )


def _same(attempt: Attempt, loader: Loader, size: int) -> Loader | None:
    """Return the loader that was made at the same line with this size; None if there is none.

    With larger batches, another loader may give more batches, for example for validation.
    """
    place = loader.made_at and (loader.made_at.file, loader.made_at.line)
    own = [
        one
        for one in (attempt.process.loaders if attempt.process else ())
        if (one.made_at and (one.made_at.file, one.made_at.line)) == place
        and one.settings.get("batch_size") == size
    ]
    return max(own, key=lambda one: one.batches, default=None)


def _rate(attempt: Attempt) -> float | None:
    """Return the samples per second of all processes; None without a steady pace."""
    pace = attempt.pace
    if pace is None or pace.steps < FEWEST_STEPS or not (pace.is_whole or attempt.exit_code == 0):
        return None
    each = batches_per_step(attempt) * samples_per_batch(attempt)
    return pace.steps_per_s * each * attempt.ranks


def _took(attempt: Attempt) -> str:
    return format_duration(attempt.elapsed_s)


def _fastest(fitting: Sequence[BatchTry]) -> int | None:
    """Return the smallest size that is about as fast as the best; None if fewer than two ran."""
    rates = {one.batch_size: one.samples_per_s for one in fitting if one.samples_per_s}
    if len(rates) < 2:
        return None
    return min(size for size, rate in rates.items() if _ALIKE * rate >= max(rates.values()))


def find_batch_size(
    run: Run,
    argv: Sequence[str],
    limit_bytes: int | None,
    for_s: float,
    progress: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
) -> BatchSizes:
    """Return the largest batch size with which a program fits into memory, and the fastest one.

    A KeyboardInterrupt ends the search early, with the result so far.

    Args:
        run: runs the program, and measures its memory.
        argv: its command, for the result.
        limit_bytes: memory of the host that the job may use; None: not known.
        for_s: time limit for all runs together.
        progress: called with a line for each run.
        clock: monotonic time in s.

    Raises:
        InputError: the program has no batch size that can be changed.
    """
    search = _Search(run, for_s, clock, progress)
    base = search.begin()
    ended_by: Limit = "interrupt"
    with contextlib.suppress(KeyboardInterrupt):
        ended_by = search.search()
    fitting = [one for one in search.tries if one.ended == "fits"]
    found = BatchSizes(
        command=tuple(masked_command(argv)),
        outcome="unproved" if ended_by in {"time", "interrupt", "too_slow"} else "found",
        verdict="",
        ended_by=ended_by,
        own=search.place.size,
        largest=max((one.batch_size for one in fitting), default=None),
        fastest=_fastest(fitting),
        processes=base.ranks,
        memory_limit_bytes=limit_bytes,
        tries=tuple(search.tries),
        elapsed_s=search.runs.elapsed_s,
    )
    return with_words(found, base)
