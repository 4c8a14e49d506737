"""Searches settings that make a program faster, and proves that they do.

The search tries one setting after another, with a single run each. It only selects, because the
best of many noisy figures is often a lucky one. For the proof, the unchanged program and the
selected settings are run again, in turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import fmean, median
from typing import NamedTuple

from teho.config.privacy import masked_command
from teho.experiment.attempt import Attempt
from teho.experiment.batches import samples_per_step
from teho.experiment.confidence import FEWEST_PAIRS, LONG_SECOND_CHECKS, first_check, second_check
from teho.experiment.search_space import WAITED, Coordinate, Room, coordinates, merged
from teho.experiment.timed_runs import Run, TimedRuns
from teho.experiment.unmeasurable import no_baseline, no_pace
from teho.experiment.wording import changes_of, in_words
from teho.model.tuned import Gain, Settings, Trial, Tuned
from teho.units import format_duration, format_pace, many

__all__ = ["tune"]

_BETTER = 1.05
"""The search follows a single run that is this many times as fast. Processes of one program differ
by a few per cent."""
_WORTH = 1.01
"""The interval of a gain must begin above this."""
_ALIKE = 1.05
"""A simpler choice is taken if no gain over it is proved, and it is at most this much slower."""
_MAYBE_ALIKE = 1.15
"""A simpler choice is repeated with the best if it was at most this much slower in the search."""
_LARGE = 2.0
"""A gain that the fewest pairs can show."""
_LUCKY = 0.75
"""If the first run was lucky, the best try may seem this slow, but be faster."""
_PATIENCE = 3.0
"""Time limit of a run, relative to the unchanged program."""


class _OutOfTimeError(Exception):
    """The time is over."""


class _Measured(NamedTuple):
    """Settings that the search follows, and the run that measured them."""

    settings: Settings
    speed: float
    run: Attempt


class _Tuning:
    def __init__(
        self, run: Run, for_s: float, clock: Callable[[], float], progress: Callable[[str], None]
    ) -> None:
        self._timed = TimedRuns(run, for_s, clock)
        self._progress = progress
        self.runs: list[tuple[Settings, Attempt, str]] = []
        """Every run in its order, and why it does not count."""
        self.notes: list[str] = []
        self.base: Attempt | None = None
        self.gain: Gain | None = None
        self.chosen: Settings = {}
        self._tries: list[_Measured] = []
        self.followed: list[_Measured] = []
        """The unchanged program, then all settings that the search followed, the best last."""

    @property
    def elapsed_s(self) -> float:
        return self._timed.elapsed_s

    def affords(self, count: int) -> bool:
        return self._timed.affords(count)

    # ---- runs ----

    def begin(self) -> Attempt:
        """Run the unchanged program.

        Raises:
            InputError: its pace cannot be measured.
        """
        base = self._attempt({})
        if error := no_baseline(base, self._timed.for_s):
            raise error
        self.base = base
        self.followed = [self._noted({}, base, "")]
        return base

    def measure(self, settings: Settings) -> _Measured | None:
        """Run the program with these settings; None if the run does not count."""
        run = self._attempt(settings)
        why = no_pace(settings, run)
        measured = self._noted(settings, run, why)
        return None if why else measured

    def _attempt(self, settings: Settings) -> Attempt:
        left_s, made_at = self._timed.left_s, None
        if self.base:
            left_s = max(_PATIENCE * self.base.elapsed_s, self.base.elapsed_s + 10)
            frame = self.base.loader.made_at if self.base.loader else None
            made_at = (frame.file, frame.line) if frame else None
        return self._timed(settings, left_s, made_at)

    def _noted(self, settings: Settings, run: Attempt, why: str) -> _Measured:
        self.runs.append((settings, run, why))
        pace = f"{format_pace(run.pace.steps_per_s)} {many(run.unit)}/s" if run.pace else ""
        self._progress(f"{in_words(settings) or 'unchanged'}: {why or pace}")
        return _Measured(settings, self.speed_of(run), run)

    def speed_of(self, run: Attempt) -> float:
        """Return steps per second, in steps of the unchanged program's size."""
        if run.pace is None:
            return 0.0
        return run.pace.steps_per_s * samples_per_step(run) / samples_per_step(self.base or run)

    # ---- search ----

    def search(self, along: Sequence[Coordinate]) -> None:
        """Try all settings, and follow those that are faster."""
        try:
            for coordinate in along:
                best = self.followed[-1]
                # The time of waiting for batches limits what this could save.
                if coordinate.is_loaders and (best.run.waited or 0.0) < WAITED:
                    continue
                ways = coordinate.ways(best.run)
                if isinstance(ways, str):
                    self.notes.append(ways)
                    continue
                for way in ways:
                    if self._walk(way, coordinate.patience):
                        break
        except _OutOfTimeError:
            self.notes.append(
                "The time limit was reached before all settings were tried: increase `--for`."
            )

    def _walk(self, way: Sequence[Settings], patience: int) -> bool:
        """Try changes while they are faster; return whether to skip the other ways."""
        best, misses = self.followed[-1], 0
        for change in way:
            if not self.affords(1 + 2 * FEWEST_PAIRS):
                raise _OutOfTimeError
            one = self.measure(merged(best.settings, change))
            if one is None:  # it fails, and larger values would fail too
                return True
            self._tries.append(one)
            if one.speed > _BETTER * self.followed[-1].speed:
                self.followed.append(one)
                misses = 0
            else:
                misses += 1
                if misses >= patience:
                    break
        return self.followed[-1] is not best

    # ---- proof ----

    def prove(self) -> None:
        """Repeat the unchanged program, the best settings, and a similar simpler choice."""
        if len(self.followed) == 1 and not self._reconsider():
            return
        best = self.followed[-1]
        simpler = next(
            (one for one in self.followed[1:-1] if best.speed <= _MAYBE_ALIKE * one.speed), None
        )
        count = FEWEST_PAIRS if best.speed >= _LARGE * self.followed[0].speed else FEWEST_PAIRS + 1
        self.chosen = best.settings
        if simpler and self.affords(3 * count):
            base, own, other = self._in_rounds([{}, best.settings, simpler.settings], count)
            if len(own) >= FEWEST_PAIRS and _is_no_better(own, other):
                self.chosen, own = simpler.settings, other
        elif self.affords(2 * FEWEST_PAIRS):
            count = count if self.affords(2 * count) else FEWEST_PAIRS
            base, own = self._in_rounds([{}, best.settings], count)
        else:
            return
        if len(own) < FEWEST_PAIRS:
            return
        pairs = list(zip(base, own, strict=True))
        self.gain = first_check(pairs)
        # More than one more check would make a false gain more likely.
        if self.gain.low < _WORTH and self.gain.times >= _BETTER:
            self._check_again(pairs)

    def _reconsider(self) -> bool:
        """Follow the best try if it may be faster, because the first run may have been lucky."""
        best = max(self._tries, key=lambda one: one.speed, default=None)
        if best is None or best.speed < _LUCKY * self.followed[0].speed:
            return False
        if not self.affords(2 * FEWEST_PAIRS):
            return False
        self.followed.append(best)
        return True

    def _check_again(self, pairs: list[tuple[float, float]]) -> None:
        for count in LONG_SECOND_CHECKS:
            more = count - len(pairs)
            if self.affords(2 * more):
                base, own = self._in_rounds([{}, self.chosen], more)
                pairs += zip(base, own, strict=True)
                if len(pairs) == count:
                    self.gain = second_check(pairs)
                return

    def _in_rounds(self, settings: Sequence[Settings], count: int) -> list[list[float]]:
        """Return the speeds with each of these settings, from rounds in which all were measured."""
        found: list[list[float]] = [[] for _ in settings]
        for number in range(count):
            # In reverse, so that a machine that slows down gradually affects all equally.
            places = range(len(settings)) if number % 2 == 0 else range(len(settings) - 1, -1, -1)
            seen = {place: self.measure(settings[place]) for place in places}
            speeds = {place: one.speed for place, one in seen.items() if one}
            if len(speeds) == len(settings):
                for place, speed in speeds.items():
                    found[place].append(speed)
        return found


def _is_no_better(speeds: Sequence[float], simpler: Sequence[float]) -> bool:
    between = first_check(list(zip(simpler, speeds, strict=True)))
    return between.low < _WORTH and between.times <= _ALIKE


def tune(
    run: Run,
    argv: Sequence[str],
    room: Room,
    allowed: frozenset[str],
    for_s: float,
    progress: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
) -> Tuned:
    """Return settings that make a program faster, with a proof.

    A KeyboardInterrupt ends the search early, with the result so far.

    Args:
        run: runs the program.
        argv: its command, for the result.
        room: cores and memory of the allocation.
        allowed: from `search_space.ALLOWABLE`.
        for_s: time limit for all runs together.
        progress: called with a line for each run.
        clock: monotonic time in s.

    Raises:
        InputError: the program's pace cannot be measured.
    """
    tuning = _Tuning(run, for_s, clock, progress)
    base, is_interrupted = tuning.begin(), False
    try:
        if tuning.affords(1 + 2 * FEWEST_PAIRS):
            along, notes = coordinates(base, room, allowed)
            tuning.notes += notes
            tuning.search(along)
            tuning.prove()
    except KeyboardInterrupt:
        is_interrupted = True
    outcome, verdict = _verdict(tuning, is_interrupted=is_interrupted)
    is_proved = outcome == "gain"
    return Tuned(
        command=tuple(masked_command(argv)),
        outcome=outcome,
        verdict=verdict,
        settings=tuning.chosen if is_proved else {},
        gain=tuning.gain,
        unit=base.unit,
        changes=changes_of(tuning.chosen, base) if is_proved else (),
        trials=_trials(tuning),
        notes=tuple(dict.fromkeys(tuning.notes)),
        elapsed_s=tuning.elapsed_s,
    )


def _verdict(tuning: _Tuning, *, is_interrupted: bool) -> tuple[str, str]:
    gain, words, followed = tuning.gain, in_words(tuning.chosen), tuning.followed
    tried = len(tuning.runs) - 1
    tries = f"{tried} {'try' if tried == 1 else 'tries'}"
    interval = f"(95 % confidence: {gain.low:.2f} to {gain.high:.2f})" if gain else ""
    if gain and gain.low >= _WORTH:
        verb = "makes" if len(tuning.chosen) == 1 else "make"
        return "gain", f"{words} {verb} the program {gain.times:.2f} times as fast {interval}"
    if gain and not is_interrupted:
        gave = f"with {words}, the program was {gain.times:.2f} times as fast {interval}"
        if gain.times >= _BETTER and gain.pairs < max(LONG_SECOND_CHECKS):
            return "unproved", f"Not enough evidence, increase `--for`: {gave}"
        return "no_gain", f"The difference is not larger than chance: {gave}"
    if len(followed) > 1:
        best = followed[-1]
        why = (
            "`teho tune` was ended early"
            if is_interrupted
            else "the time limit was reached before this setting was measured again"
        )
        return "unproved", (
            f"Not enough evidence, because {why}: with {in_words(best.settings)}, one run was "
            f"{best.speed / followed[0].speed:.2f} times as fast as the unchanged program"
        )
    if is_interrupted:
        return "unproved", f"Not enough evidence: `teho tune` was ended early, after {tries}"
    if tried and not any(run.pace and not run.exit_code for _, run, _ in tuning.runs[1:]):
        return "unproved", f"Not enough evidence: no setting could be measured in {tries}"
    if tried:
        return "no_gain", "No setting that was tried is faster"
    if tuning.affords(1 + 2 * FEWEST_PAIRS):
        return "no_gain", "No setting was tried: the notes say why"
    one_s = fmean([run.elapsed_s for _, run, _ in tuning.runs])
    need = format_duration((3 + 2 * FEWEST_PAIRS) * one_s)
    return "unproved", (
        f"No setting was tried: one run takes {format_duration(one_s)}, so `--for` must be "
        f"{need} or more"
    )


def _trials(tuning: _Tuning) -> tuple[Trial, ...]:
    """Return one row for each of the settings, with all their runs."""
    kept: list[Settings] = []
    for settings, _, _ in tuning.runs:
        if settings not in kept:
            kept.append(settings)
    found = []
    base_speed = 0.0
    for settings in kept:
        own = [(run, why) for other, run, why in tuning.runs if other == settings]
        good = [run for run, why in own if not why]
        speed = _median([tuning.speed_of(run) for run in good])
        base_speed = base_speed or speed or 0.0
        waited = [100 * run.waited for run in good if run.waited is not None]
        found.append(
            Trial(
                settings=settings,
                steps_per_s=_median([run.pace.steps_per_s for run in good if run.pace]),
                speed=speed / base_speed if speed and base_speed else None,
                waited_percent=_median(waited),
                runs=len(good),
                why=next((why for _, why in own if why), ""),
            )
        )
    return tuple(found)


def _median(values: Sequence[float]) -> float | None:
    return median(values) if values else None
