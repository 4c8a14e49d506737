"""The search for settings that make a program faster, and the proof that they do.

The search walks along one setting after another, each try a single run. It only chooses: what it
measured is not proof, since the best of many noisy figures is mostly a lucky one. The proof is new
runs, of the program as it is and of what was chosen, that take turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import fmean, median
from typing import NamedTuple

from teho.config.privacy import masked_command
from teho.experiment.attempt import Attempt
from teho.experiment.confidence import FEWEST_PAIRS, LONG_SECOND_LOOKS, first_look, second_look
from teho.experiment.search_space import WAITED, Coordinate, Room, coordinates, merged
from teho.experiment.unmeasurable import no_baseline, no_pace
from teho.experiment.wording import changes_of, in_words
from teho.model.tuned import Gain, Settings, Trial, Tuned
from teho.units import format_duration, format_pace, many

__all__ = ["Run", "tune"]

Run = Callable[[Settings, float, "tuple[str, int] | None"], Attempt]
"""Runs the program with settings, for so many seconds at most, for the loader made there."""

_BETTER = 1.05
"""So many times as fast a single run must be for the search to follow it: processes of one
program differ by a few per cent."""
_WORTH = 1.01
"""Where the interval of a gain must begin."""
_ALIKE = 1.05
"""A plainer choice is taken if what it lacks is proved by nothing, and is no more than this."""
_MAYBE_ALIKE = 1.15
"""A plainer choice is repeated beside the best if the search saw it slower by no more."""
_LARGE = 2.0
"""A gain that shows in the fewest pairs."""
_LUCKY = 0.75
"""Against a lucky first run, the best try may look as slow as this, and be better."""
_PATIENCE = 3.0
"""Times what the program as it is took, for which others are waited for."""


class _OutOfTimeError(Exception):
    """No other run can be afforded."""


class _Measured(NamedTuple):
    """What is followed: settings, and the run that spoke for them."""

    settings: Settings
    speed: float
    run: Attempt


class _Tuning:
    def __init__(
        self, run: Run, for_s: float, clock: Callable[[], float], tell: Callable[[str], None]
    ) -> None:
        self._run = run
        self._for_s = for_s
        self._clock = clock
        self._tell = tell
        self._began_s = clock()
        self._spent: list[float] = []
        self.runs: list[tuple[Settings, Attempt, str]] = []
        """Every run in its order, and why it does not count."""
        self.notes: list[str] = []
        self.base: Attempt | None = None
        self.gain: Gain | None = None
        self.chosen: Settings = {}
        self._tries: list[_Measured] = []
        self.followed: list[_Measured] = []
        """The program as it is, and what was followed one after another, the best last."""

    @property
    def elapsed_s(self) -> float:
        return self._clock() - self._began_s

    def affords(self, count: int) -> bool:
        return self.elapsed_s + count * fmean(self._spent) <= self._for_s

    # ---- runs ----

    def begin(self) -> Attempt:
        """Run the program as it is.

        Raises:
            InputError: its pace cannot be measured.
        """
        base = self._attempt({})
        if why := no_baseline(base, self._for_s):
            raise why
        self.base = base
        self.runs.append(({}, base, ""))
        self.followed = [_Measured({}, self.speed_of(base), base)]
        self._tell_of({}, base)
        return base

    def _attempt(self, settings: Settings) -> Attempt:
        left_s, made_at = self._for_s - self.elapsed_s, None
        if self.base:
            left_s = max(_PATIENCE * self.base.elapsed_s, self.base.elapsed_s + 10)
            frame = self.base.loader.made_at if self.base.loader else None
            made_at = (frame.file, frame.line) if frame else None
        began_s = self._clock()
        run = self._run(settings, left_s, made_at)
        self._spent.append(self._clock() - began_s)
        return run

    def measure(self, settings: Settings) -> _Measured | None:
        """Run it with these settings; None if they are out."""
        run = self._attempt(settings)
        why = no_pace(settings, run)
        self.runs.append((settings, run, why))
        self._tell_of(settings, run, why)
        return None if why else _Measured(settings, self.speed_of(run), run)

    def _tell_of(self, settings: Settings, run: Attempt, why: str = "") -> None:
        pace = f"{format_pace(run.pace.steps_per_s)} {many(run.unit)}/s" if run.pace else ""
        self._tell(f"{in_words(settings) or 'as it is'}: {why or pace}")

    def speed_of(self, run: Attempt) -> float:
        """Return steps a second, of the size that they have in the program as it is."""
        if run.pace is None:
            return 0.0
        return run.pace.steps_per_s * self._size(run) / self._size(self.base or run)

    @staticmethod
    def _size(run: Attempt) -> float:
        """Return the samples of a step."""
        size = (run.loader.settings.get("batch_size") if run.loader else 0) or 1
        return float(size * _batches_per_step(run))

    # ---- search ----

    def search(self, along: Sequence[Coordinate]) -> None:
        """Follow what helps."""
        try:
            for coordinate in along:
                best = self.followed[-1]
                # What is left to wait for bounds what more of this could give.
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
            self.notes.append("The time was over before all was tried; `--for` gives more.")

    def _walk(self, way: Sequence[Settings], patience: int) -> bool:
        """Go on while it helps; return whether no other way is to be gone."""
        best, misses = self.followed[-1], 0
        for change in way:
            if not self.affords(1 + 2 * FEWEST_PAIRS):
                raise _OutOfTimeError
            one = self.measure(merged(best.settings, change))
            if one is None:  # it fails, and more of it would too
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
        """Repeat the best beside the program as it is, and a plainer one if it may do as well."""
        if len(self.followed) == 1 and not self._reconsider():
            return
        best = self.followed[-1]
        plainer = next(
            (one for one in self.followed[1:-1] if best.speed <= _MAYBE_ALIKE * one.speed), None
        )
        count = FEWEST_PAIRS if best.speed >= _LARGE * self.followed[0].speed else FEWEST_PAIRS + 1
        self.chosen = best.settings
        if plainer and self.affords(3 * count):
            base, own, other = self._in_turns([{}, best.settings, plainer.settings], count)
            if len(own) >= FEWEST_PAIRS and _is_no_better(own, other):
                self.chosen, own = plainer.settings, other
        elif self.affords(2 * FEWEST_PAIRS):
            count = count if self.affords(2 * count) else FEWEST_PAIRS
            base, own = self._in_turns([{}, best.settings], count)
        else:
            return
        if len(own) < FEWEST_PAIRS:
            return
        pairs = list(zip(base, own, strict=True))
        self.gain = first_look(pairs)
        # To give up is always allowed; to go on until it pleases is not, so there is one more look.
        if self.gain.low < _WORTH and self.gain.times >= _BETTER:
            self._look_again(pairs)

    def _reconsider(self) -> bool:
        """Follow the best try though it seemed no better: the first run may have been lucky."""
        best = max(self._tries, key=lambda one: one.speed, default=None)
        if best is None or best.speed < _LUCKY * self.followed[0].speed:
            return False
        if not self.affords(2 * FEWEST_PAIRS):
            return False
        self.followed.append(best)
        return True

    def _look_again(self, pairs: list[tuple[float, float]]) -> None:
        for count in LONG_SECOND_LOOKS:
            more = count - len(pairs)
            if self.affords(2 * more):
                base, own = self._in_turns([{}, self.chosen], more)
                pairs += zip(base, own, strict=True)
                if len(pairs) == count:
                    self.gain = second_look(pairs)
                return

    def _in_turns(self, settings: Sequence[Settings], count: int) -> list[list[float]]:
        """Return the speeds with each of these settings, of rounds in which all were measured."""
        found: list[list[float]] = [[] for _ in settings]
        for number in range(count):
            # Every other round in reverse: a machine that slows down by and by favours nobody.
            places = range(len(settings)) if number % 2 == 0 else range(len(settings) - 1, -1, -1)
            seen = {place: self.measure(settings[place]) for place in places}
            speeds = {place: one.speed for place, one in seen.items() if one}
            if len(speeds) == len(settings):
                for place, speed in speeds.items():
                    found[place].append(speed)
        return found


def _batches_per_step(run: Attempt) -> float:
    """Return how many batches a step takes, as a whole number or the inverse of one.

    It is 1 but where gradients are accumulated, several optimizers step, or the program calls
    its epochs steps. What a window's ends cut off would be noise.
    """
    if run.pace is None or run.loader is None:
        return 1.0
    given = sum(run.pace.from_s < one.at_s <= run.pace.until_s for one in run.loader.given)
    if not given:
        return 1.0
    batches = given / run.pace.steps
    return float(round(batches)) if batches >= 1 else 1 / round(1 / batches)


def _is_no_better(speeds: Sequence[float], plainer: Sequence[float]) -> bool:
    between = first_look(list(zip(plainer, speeds, strict=True)))
    return between.low < _WORTH and between.times <= _ALIKE


def tune(
    run: Run,
    argv: Sequence[str],
    room: Room,
    allowed: frozenset[str],
    for_s: float,
    tell: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
) -> Tuned:
    """Find settings that make a program faster, and prove it.

    A KeyboardInterrupt ends it early, with what is known then.

    Args:
        run: runs the program.
        argv: its command, for the result.
        room: cores and memory of the allocation.
        allowed: of `moves.ALLOWABLE`.
        for_s: how long it may take.
        tell: called with a line for each run.
        clock: monotonic time in s.

    Raises:
        InputError: the program's pace cannot be measured.
    """
    tuning = _Tuning(run, for_s, clock, tell)
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
    if gain and gain.low >= _WORTH:
        verb = "makes" if len(tuning.chosen) == 1 else "make"
        interval = f"95 %: {gain.low:.2f} to {gain.high:.2f}"
        return "gain", f"{words} {verb} it {gain.times:.2f} times as fast ({interval})"
    if gain and not is_interrupted:
        gave = (
            f"{words} gave {gain.times:.2f} times the speed "
            f"(95 %: {gain.low:.2f} to {gain.high:.2f})"
        )
        if gain.times >= _BETTER and gain.pairs < max(LONG_SECOND_LOOKS):
            return "unproved", f"The time was not enough for a verdict; `--for` gives more: {gave}"
        return "no_gain", f"No difference beyond chance: {gave}"
    if len(followed) > 1:
        best = followed[-1]
        why = "it was ended early" if is_interrupted else "it could not be repeated often enough"
        return "unproved", (
            f"Nothing is proved, {why}: {in_words(best.settings)} went "
            f"{best.speed / followed[0].speed:.2f} times as fast in one run"
        )
    tried = len(tuning.runs) - 1
    tries = f"{tried} {'try' if tried == 1 else 'tries'}"
    if is_interrupted:
        return "unproved", f"Nothing is proved: it was ended early, after {tries}"
    if not tuning.affords(1 + 2 * FEWEST_PAIRS) and not tried:
        one_s = fmean([run.elapsed_s for _, run, _ in tuning.runs])
        need = format_duration((3 + 2 * FEWEST_PAIRS) * one_s)
        return "unproved", (
            f"Nothing was tried: one run takes {format_duration(one_s)}, so `--for` must be "
            f"{need} or more"
        )
    if tried and not any(run.pace and not run.exit_code for _, run, _ in tuning.runs[1:]):
        return "unproved", f"Nothing is proved: {tries}, and none could be measured"
    if not tried:
        return "no_gain", "There is nothing to gain from what may be set: nothing was tried"
    return "no_gain", "Nothing that was tried makes it faster"


def _trials(tuning: _Tuning) -> tuple[Trial, ...]:
    """Return one row for settings that were run several times."""
    kept: list[Settings] = []
    for settings, _, _ in tuning.runs:
        if settings not in kept:
            kept.append(settings)
    found = []
    level = 0.0
    for settings in kept:
        own = [(run, why) for other, run, why in tuning.runs if other == settings]
        good = [run for run, why in own if not why]
        speed = median(map(tuning.speed_of, good)) if good else None
        level = level or speed or 0.0
        waited = [100 * run.waited for run in good if run.waited is not None]
        found.append(
            Trial(
                settings=settings,
                steps_per_s=median(run.pace.steps_per_s for run in good if run.pace)
                if good
                else None,
                speed=speed / level if speed and level else None,
                waited_percent=median(waited) if waited else None,
                runs=len(good),
                why=next((why for _, why in own if why), ""),
            )
        )
    return tuple(found)
