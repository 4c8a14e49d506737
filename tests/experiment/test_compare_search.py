"""How often a comparison runs a program, when it stops, and what it then claims."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

import pytest

from experiment.samples import FREE, broken, paced, place, whole
from teho.experiment.compare import CompareRequest, compare, crossing
from teho.experiment.outputs import Printed
from teho.experiment.placement import Placement
from teho.experiment.recorded import Recorded
from teho.experiment.verdict import Terms
from teho.model.compared import Compared, PairComparison, Point, Sample
from teho.model.tuned import Gain


class Simulated:
    """A program that exists as a table of its times, and the clock that `compare` looks at.

    Args:
        took_s: how long a run takes, by variant.
        noise: relative standard deviation from run to run.
        extra_s: what a run takes beside the program.
    """

    def __init__(
        self, took_s: Mapping[str, float], *, noise: float = 0.0, seed: int = 0, extra_s: float = 0
    ) -> None:
        self.took_s, self.noise, self.extra_s = took_s, noise, extra_s
        self.random = random.Random(seed)
        self.now_s = 0.0
        self.done: list[str] = []
        self.limits_s: list[float] = []
        self.output = "sum 1\n"
        self.interrupt_at = -1
        self.fails: Callable[[str, int], bool] = lambda _, __: False

    def clock(self) -> float:
        return self.now_s

    def __call__(self, placement: Placement, limit_s: float) -> Recorded:
        if len(self.done) == self.interrupt_at:
            raise KeyboardInterrupt
        name = placement.name
        self.done.append(name)
        self.limits_s.append(limit_s)
        if self.fails(name, self.done.count(name)):
            self.now_s += 1
            return Recorded(broken())
        elapsed_s = self.took_s[name] * self.random.lognormvariate(0, self.noise)
        self.now_s += elapsed_s + self.extra_s
        return Recorded(self.sample(elapsed_s), Printed(self.output))

    def sample(self, elapsed_s: float) -> Sample:
        return whole(elapsed_s)


class Endless(Simulated):
    """One that is ended when its pace is known."""

    def sample(self, elapsed_s: float) -> Sample:
        return paced(100 / elapsed_s)


def wished(*names: str, for_s: float = 1000.0) -> CompareRequest:
    return CompareRequest(("fit",), [place(name) for name in names], FREE, for_s)


def compared(program: Simulated, *names: str, for_s: float = 1000.0) -> Compared:
    wish = wished(*(names or program.took_s), for_s=for_s)
    return compare(wish, "1f", lambda _: program, lambda _: None, program.clock)


@pytest.mark.parametrize("kind", [Simulated, Endless])
def test_a_clear_winner_is_known_after_three_rounds(kind: type[Simulated]) -> None:
    program = kind({"cpu:1": 10.0, "cpu:8": 3.0, "gpu:1": 1.0}, noise=0.01)
    found = compared(program)
    assert found.outcome == "worth_it"
    assert len(program.done) == 9
    # Back and forth, so that a machine that slows down affects all equally.
    assert program.done == [
        "cpu:1", "cpu:8", "gpu:1", "gpu:1", "cpu:8", "cpu:1", "cpu:1", "cpu:8", "gpu:1",
    ]  # fmt: skip
    assert found.elapsed_s == pytest.approx(program.now_s)


def test_what_is_not_clear_gets_ten_rounds_and_no_more() -> None:
    program = Simulated({"cpu:1": 10.0, "gpu:1": 10.0}, noise=0.2)
    found = compared(program)
    assert len(program.done) == 20
    if found.outcome == "not_enough_evidence":
        (note,) = [note for note in found.points[0].notes if "were not enough" in note]
        assert note.startswith("10 rounds")


def test_or_seven_if_there_is_no_more_time() -> None:
    program = Simulated({"cpu:1": 10.0, "gpu:1": 10.0}, noise=0.2, seed=1)
    compared(program, for_s=180)
    assert len(program.done) == 14


def test_noise_is_rarely_a_gain() -> None:
    outcomes = [
        compared(Simulated({"cpu:1": 9.0, "cpu:8": 9.0, "gpu:1": 9.0}, noise=0.1, seed=n)).outcome
        for n in range(200)
    ]
    assert outcomes.count("worth_it") <= 10


def test_time_for_two_rounds_is_too_short_and_the_needed_time_is_shown() -> None:
    program = Simulated({"cpu:1": 30.0, "gpu:1": 20.0}, extra_s=5)
    found = compared(program, for_s=170)
    assert len(program.done) == 4
    assert found.outcome == "not_enough_evidence"
    assert "each variant has only 2 runs, but 3 are needed" in found.verdict
    assert found.points[0].notes[-1] == "`--for 4min` gives 3 runs of each variant."
    again = Simulated({"cpu:1": 30.0, "gpu:1": 20.0}, extra_s=5)
    assert compared(again, for_s=240).outcome == "worth_it"


def test_the_first_round_leaves_time_for_a_second_one() -> None:
    # Each takes all that it may.
    program = Simulated({"cpu:1": 100.0, "cpu:2": 100.0, "gpu:1": 100.0})
    compared(program, for_s=600)
    assert program.limits_s[:3] == pytest.approx([100, 100, 100])


def test_who_came_to_an_end_before_is_not_out_because_the_time_is() -> None:
    program = Simulated({"cpu:1": 10.0, "gpu:1": 10.0})
    compared(program, for_s=61)
    assert len(program.done) == 6
    assert min(program.limits_s[2:]) >= 20


def test_a_variant_that_fails_is_not_tried_again() -> None:
    program = Simulated({"cpu:1": 10.0, "cpu:2": 3.0, "gpu:1": 1.0})
    program.fails = lambda name, _: name == "gpu:1"
    found = compared(program)
    assert program.done.count("gpu:1") == 1
    assert found.outcome == "worth_it"
    assert found.verdict.startswith("Use 2 cores")


def test_it_ends_if_only_one_is_left() -> None:
    program = Simulated({"cpu:1": 10.0, "gpu:1": 1.0})
    program.fails = lambda name, count: name == "gpu:1" and count == 2
    found = compared(program)
    assert found.outcome == "not_enough_evidence"
    assert program.done == ["cpu:1", "gpu:1", "gpu:1", "cpu:1"]


def test_one_variant_is_run_once_and_this_is_reported() -> None:
    program = Simulated({"cpu:1": 10.0})
    found = compared(program)
    assert found.verdict == "Not enough evidence: only 1 core could be measured"
    assert program.done == ["cpu:1"]


@pytest.mark.parametrize("at", [0, 1, 4, 5])
def test_an_interrupt_leaves_what_is_known(at: int) -> None:
    program = Simulated({"cpu:1": 10.0, "gpu:1": 1.0})
    program.interrupt_at = at
    found = compared(program)
    assert found.outcome == "not_enough_evidence"
    assert "The comparison was ended early." in found.notes
    assert sum(len(one.samples) for one in found.points[0].variants) == at
    assert not any("--for" in note for note in found.points[0].notes)


def test_an_interrupt_after_enough_rounds_is_a_verdict() -> None:
    program = Simulated({"cpu:1": 10.0, "gpu:1": 8.0}, noise=0.15)
    program.interrupt_at = 7
    assert compared(program).points[0].comparison.speed.pairs == 3


def test_other_results_are_shown() -> None:
    program = Simulated({"cpu:1": 10.0, "gpu:1": 1.0})

    def run(placement: Placement, limit_s: float) -> Recorded:
        recorded = program(placement, limit_s)
        return recorded._replace(printed=Printed(f"sum {1 + len(placement.gpus)}\n"))

    found = compare(wished("cpu:1", "gpu:1"), "1f", lambda _: run, lambda _: None, program.clock)
    assert found.outcome == "worth_it"
    assert (
        found.points[0]
        .notes[0]
        .startswith("The program prints other results on gpu:1 than on cpu:1")
    )


class TestSweep:
    """One second for 1,000 rows on a core; on the GPU, 10 s to begin and 20 times as fast."""

    @staticmethod
    def swept(
        values: tuple[float, ...], for_s: float = 1e5, terms: Terms = FREE
    ) -> tuple[Compared, list[str]]:
        programs: dict[float | None, Simulated] = {}
        now_s = [0.0]

        def run_at(rows: float | None) -> Simulated:
            took_s = {"cpu:1": (rows or 0) / 1000, "gpu:1": 10 + (rows or 0) / 20_000}
            program = programs[rows] = Simulated(took_s, noise=0.01)
            program.now_s = now_s[0]
            return program

        def clock() -> float:
            now_s[0] = max([now_s[0], *(program.now_s for program in programs.values())])
            return now_s[0]

        wish = wished("cpu:1", "gpu:1", for_s=for_s)
        wish = wish._replace(swept="rows", values=values, terms=terms)
        found = compare(wish, "1f", run_at, lambda _: None, clock)
        return found, [name for program in programs.values() for name in program.done]

    def test_the_crossing_is_at_the_size_with_equal_times(self) -> None:
        found, done = self.swept((1e3, 4e3, 16e3, 64e3))
        # rows / 1000 = 10 + rows / 20,000, at 10,526.
        assert found.break_even.at == pytest.approx(10_526, rel=0.1)
        assert (found.break_even.low, found.break_even.high) == (4e3, 16e3)
        assert found.verdict.startswith(
            "1 GPU is faster than 1 core if rows is more than about 11,000 "
            "(this limit is between 4,000 and 16,000). At rows = 64,000, "
        )
        assert found.outcome == "worth_it"
        assert [point.outcome for point in found.points] == [
            "not_worth_it", "not_worth_it", "worth_it", "worth_it",
        ]  # fmt: skip
        assert len(done) == 4 * 6

    def test_a_gpu_that_is_faster_and_too_dear_is_not_praised(self) -> None:
        dear = Terms({"cpu:1": 1.0, "gpu:1": 75.0}, {})
        found, _ = self.swept((1e3, 4e3, 16e3, 64e3), terms=dear)
        assert found.outcome == "not_worth_it"
        assert found.verdict.startswith(
            "1 GPU is faster than 1 core if rows is more than about 11,000 "
        )
        assert ". At rows = 64,000: 1 core is enough: " in found.verdict
        assert found.verdict.endswith(", at 75 times the price")

    def test_without_a_crossing_the_largest_value_decides(self) -> None:
        found, _ = self.swept((1e3, 4e3))
        assert found.break_even is None
        assert found.verdict.startswith("At rows = 4,000: 1 core is enough")

    def test_if_the_gpu_fails_the_sweep_ends_there_and_says_so(self) -> None:
        programs: list[Simulated] = []

        def run_at(rows: float | None) -> Simulated:
            rows = rows or 0
            # Memory ends at 256,000 rows; what is left then are cores.
            took_s = {"cpu:1": rows / 1000, "cpu:2": rows / 2000, "gpu:1": 10 + rows / 20_000}
            program = Simulated(took_s, noise=0.01)
            program.fails = lambda name, _: name == "gpu:1" and rows >= 256e3
            programs.append(program)
            return program

        def clock() -> float:
            return sum(program.now_s for program in programs)

        wish = wished("cpu:1", "cpu:2", "gpu:1", for_s=1e6)
        values = (4e3, 16e3, 64e3, 256e3, 512e3)
        wish = wish._replace(swept="rows", values=values)
        found = compare(wish, "1f", run_at, lambda _: None, clock)
        assert found.points[-1].comparison.larger == "cpu:2"
        # rows / 2000 = 10 + rows / 20,000, at 22,222.
        assert found.break_even.at == pytest.approx(22_222, rel=0.1)
        assert found.verdict.startswith(
            "1 GPU is faster than 2 cores if rows is more than about 23,000 "
        )
        assert ". At rows = 64,000, " in found.verdict
        assert found.verdict.endswith(". At rows = 256,000, the variants could not be compared")
        assert found.outcome == "worth_it"

    def test_if_other_variants_are_faster_at_other_values_no_pair_is_faster_throughout(
        self,
    ) -> None:
        # At 10,000 rows, 8 GPUs are slower than 64 cores.
        took_s = {
            1e3: {"cpu:1": 1, "cpu:64": 3, "gpu:1": 4, "gpu:8": 9},
            1e4: {"cpu:1": 10, "cpu:64": 9.8, "gpu:1": 6, "gpu:8": 11},
            1e5: {"cpu:1": 100, "cpu:64": 12, "gpu:1": 10, "gpu:8": 1.2},
        }
        programs = {rows: Simulated(own) for rows, own in took_s.items()}

        def clock() -> float:
            return sum(program.now_s for program in programs.values())

        wish = wished("cpu:1", "cpu:64", "gpu:1", "gpu:8")
        wish = wish._replace(swept="rows", values=tuple(took_s))
        found = compare(wish, "1f", lambda rows: programs[rows or 0], lambda _: None, clock)
        assert "GPUs are faster than cores if rows is more than about 5,400 " in found.verdict
        assert "(this limit is between 1,000 and 10,000). At rows = 100,000: " in (found.verdict)
        assert "Use 8 GPUs: they are 10.00 times as fast as 64 cores" in found.verdict

    def test_each_value_has_its_share_of_the_time(self) -> None:
        found, _ = self.swept((1e3, 4e3, 16e3, 64e3), for_s=200)
        assert [point.value for point in found.points] == [1e3, 4e3, 16e3, 64e3]
        assert found.elapsed_s < 400


def point_at(value: float, low: float, high: float) -> Point:
    speed = Gain(times=(low * high) ** 0.5, low=low, high=high, pairs=3)
    comparison = PairComparison(larger="gpu:1", smaller="cpu:1", speed=speed)
    return Point(
        value=value,
        outcome="worth_it",
        verdict="",
        measure="time",
        variants=(),
        comparison=comparison,
    )


@pytest.mark.parametrize(
    ("speeds", "between"),
    [
        ([(0.1, 0.2), (0.9, 1.2), (3, 4)], (1, 3)),
        ([(0.1, 0.2), (0.9, 1.05), (0.95, 1.1)], None),
        ([(3, 4), (0.1, 0.2)], None),
        ([(3, 4), (0.1, 0.2), (2, 3)], (2, 3)),
        ([(0.95, 1.05), (0.96, 1.1)], None),
        ([(1.1, 1.2), (1.3, 1.4)], None),
        ([], None),
    ],
    ids=["in the dark", "never faster", "falling", "the last one", "noise", "always", "nothing"],
)
def test_a_crossing_is_between_two_clear_points(
    speeds: list[tuple[float, float]], between: tuple[float, float] | None
) -> None:
    found = crossing([point_at(n, *speed) for n, speed in enumerate(speeds, start=1)], "rows")
    assert (found and (found.low, found.high)) == between
    assert found is None or found.low <= found.at <= found.high
