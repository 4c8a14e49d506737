"""The verdict, from runs: each outcome on both sides of its threshold."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from experiment.samples import FREE, broken, paced, place, runs, whole, whole_runs
from teho.experiment.verdict import Terms, judge
from teho.model.compared import Point

NEAR = [0.999, 1.0, 1.001]


def near(speed: float) -> list[float]:
    """Return the speeds of three runs that differ by a thousandth."""
    return [speed * factor for factor in NEAR]


def judged(terms: Terms = FREE, **speeds: float) -> Point:
    return judge(whole_runs(**{name: near(speed) for name, speed in speeds.items()}), terms)


class TestTimeAlone:
    @pytest.mark.parametrize(
        ("speed", "outcome"),
        [
            (0.5, "not_worth_it"),
            (0.94, "not_worth_it"),
            (0.96, "no_difference"),
            (1.0, "no_difference"),
            (1.04, "no_difference"),
            (1.06, "worth_it"),
            (20.0, "worth_it"),
        ],
    )
    def test_a_gpu_against_cores(self, speed: float, outcome: str) -> None:
        assert judged(cpu_8=1.0, gpu_1=speed).outcome == outcome

    @pytest.mark.parametrize(
        ("speed", "outcome"),
        [
            (0.9, "not_worth_it"),
            (1.0, "no_difference"),
            (1.49, "not_worth_it"),
            (1.51, "worth_it"),
            (2.0, "worth_it"),
        ],
    )
    @pytest.mark.parametrize("kind", ["cpu", "gpu"])
    def test_twice_the_cores_or_gpus(self, kind: str, speed: float, outcome: str) -> None:
        names = {f"{kind}_1": 1.0, f"{kind}_2": speed}
        assert judged(**names).outcome == outcome

    @pytest.mark.parametrize(("speed", "outcome"), [(2.24, "not_worth_it"), (2.26, "worth_it")])
    def test_four_times_the_cores(self, speed: float, outcome: str) -> None:
        assert judged(cpu_2=1.0, cpu_8=speed).outcome == outcome

    def test_noise_leaves_it_open(self) -> None:
        point = judge(whole_runs(cpu_1=[1.0, 1.0, 1.0], gpu_1=[0.8, 1.1, 1.6]), FREE)
        assert point.outcome == "not_enough_evidence"
        assert point.verdict.startswith("Not enough evidence: 1 GPU is 1.1")
        assert "`--gpu-cost CORES`" in point.notes[-1]


class TestPrice:
    @pytest.mark.parametrize(
        ("price", "speed", "outcome"),
        [
            (10.0, 9.0, "not_worth_it"),
            (10.0, 9.9, "not_worth_it"),
            (10.0, 11.0, "worth_it"),
            (1.01, 1.0, "no_difference"),
            (10.0, 1.0, "not_worth_it"),
            # Cheaper, and slower by less than that.
            (0.5, 0.45, "not_worth_it"),
            (0.5, 0.6, "worth_it"),
        ],
    )
    def test_the_same_work_must_cost_less(self, price: float, speed: float, outcome: str) -> None:
        terms = Terms({"cpu:8": 3.0, "gpu:1": 3.0 * price}, {})
        point = judged(terms, cpu_8=1.0, gpu_1=speed)
        assert point.outcome == outcome
        assert point.verdict.endswith(f", at {price:.3g} times the price")
        assert point.comparison.price == pytest.approx(price)

    def test_faster_but_more_expensive_is_reported(self) -> None:
        point = judged(Terms({"cpu:8": 1.0, "gpu:1": 10.0}, {}), cpu_8=1.0, gpu_1=5.0)
        assert point.verdict.startswith(
            "8 cores are enough: 1 GPU is 5.00 times as fast (95 % confidence: "
        )
        assert point.notes == (
            "The price decides: if only the time counts, 1 GPU is the faster choice.",
        )

    @pytest.mark.parametrize(("speed", "outcome"), [(15.0, "not_worth_it"), (17.0, "worth_it")])
    def test_cores_of_the_same_cost_that_were_measured(self, speed: float, outcome: str) -> None:
        # 32 cores are no more than 16 times as fast as one, and cost as much as the GPU.
        point = judged(Terms({}, {1: 32}), cpu_1=1.0, cpu_32=16.0, gpu_1=speed)
        assert point.comparison.smaller == "cpu:32"
        assert point.comparison.same_cost_is_measured
        assert point.comparison.same_cost_speed == pytest.approx(speed / 16, rel=0.01)
        assert point.outcome == outcome
        assert (
            ". For the same price, you get 32 cores, which would be 1 times as fast"
            in point.verdict
        )

    @pytest.mark.parametrize(("speed", "outcome"), [(31.0, "not_worth_it"), (34.0, "worth_it")])
    def test_cores_of_the_same_cost_that_were_not_measured(
        self, speed: float, outcome: str
    ) -> None:
        # One core makes the best use of itself: 32 of them could be 32 times as fast.
        point = judged(Terms({}, {1: 32}), cpu_1=1.0, cpu_2=1.6, gpu_1=speed)
        assert point.outcome == outcome
        assert not point.comparison.same_cost_is_measured
        assert "you get 32 cores, which would be at most 20 times as fast" in point.verdict

    def test_cores_among_themselves_have_no_price(self) -> None:
        terms = Terms({"cpu:1": 1.0, "cpu:2": 2.0}, {})
        assert judged(terms, cpu_1=1.0, cpu_2=1.6).outcome == "worth_it"


class TestWho:
    def test_the_fewest_cores_that_are_as_fast_as_any(self) -> None:
        assert judged(cpu_1=1.0, cpu_8=1.03, gpu_1=3).comparison.smaller == "cpu:1"
        assert judged(cpu_1=1.0, cpu_8=1.07, gpu_1=3).comparison.smaller == "cpu:8"
        assert judged(cpu_1=1.0, cpu_8=0.5, gpu_1=3).comparison.smaller == "cpu:1"

    def test_gpus_that_add_too_little_are_not_compared(self) -> None:
        assert judged(cpu_1=1.0, gpu_1=10, gpu_8=11).comparison.larger == "gpu:1"
        assert judged(cpu_1=1.0, gpu_1=10, gpu_8=40).comparison.larger == "gpu:8"

    def test_of_several_core_counts_the_most_efficient_is_compared(self) -> None:
        point = judged(cpu_1=1.0, cpu_4=3.8, cpu_64=4.0)
        assert (point.comparison.larger, point.outcome) == ("cpu:4", "worth_it")

    def test_the_first_one_measured_is_what_the_table_counts_from(self) -> None:
        point = judged(cpu_1=1.0, cpu_2=2.0, gpu_1=10)
        assert [one.speed and round(one.speed.times) for one in point.variants] == [None, 2, 10]
        point = judge({place("cpu:1"): [broken()], **whole_runs(cpu_2=NEAR, gpu_1=near(10))}, FREE)
        assert [one.speed and round(one.speed.times) for one in point.variants] == [None, None, 10]


class TestWhatIsOut:
    def test_a_variant_that_failed_once_is_dropped_and_reported(self) -> None:
        point = judge(runs(cpu_1=[whole(1.0)] * 3, gpu_1=[whole(0.1), broken(), whole(0.1)]), FREE)
        assert point.outcome == "not_enough_evidence"
        assert point.verdict == "Not enough evidence: only 1 core could be measured"
        (gpu,) = [one for one in point.variants if one.name == "gpu:1"]
        assert gpu.why == "it ended with exit code 3 in 1 of 3 runs"
        assert gpu.rates == ()
        assert "gpu:1 could not be measured: this verdict covers only CPU cores." in point.notes

    def test_no_variant_at_all(self) -> None:
        point = judge(runs(cpu_1=[broken()], gpu_1=[]), FREE)
        assert point.verdict == "Not enough evidence: none of the variants could be measured"
        assert [one.why for one in point.variants] == [
            "it ended with exit code 3", "the time limit was too short for this run",
        ]  # fmt: skip

    def test_two_rounds_are_too_few(self) -> None:
        point = judge(whole_runs(cpu_1=[1.0, 1.0], gpu_1=[9.0, 11.0]), FREE)
        assert point.verdict == (
            "Not enough evidence: each variant has only 2 runs, but 3 are needed; 1 GPU was 10.00 "
            "times as fast as 1 core"
        )

    def test_whole_runs_are_not_compared_with_runs_that_were_stopped(self) -> None:
        point = judge(runs(cpu_1=[paced(5)] * 3, cpu_2=[paced(9)] * 3, gpu_1=[whole(1)] * 3), FREE)
        (gpu,) = [one for one in point.variants if one.why]
        assert (gpu.name, "`--full` compares whole runs" in gpu.why) == ("gpu:1", True)
        assert point.measure == "pace"
        assert point.comparison.larger == "cpu:2"

    def test_who_counts_other_steps_is_out(self) -> None:
        batches = [paced(500, unit="batch")] * 3
        point = judge(runs(cpu_1=[paced(5)] * 3, gpu_1=batches), FREE)
        assert point.outcome == "not_enough_evidence"
        assert point.variants[1].why == "this run counts batches, but the other runs count steps"

    @given(
        st.lists(st.floats(0.1, 10), min_size=3, max_size=10),
        st.integers(0, 9),
        st.floats(1e-3, 1e3),
    )
    def test_what_failed_is_never_averaged_in(
        self, speeds: list[float], at: int, of_it: float
    ) -> None:
        others = whole_runs(cpu_1=speeds, cpu_2=speeds)
        without = judge(others, FREE)
        failing = [whole(of_it)] * (at % len(speeds)) + [replace(whole(of_it), why="it failed")]
        point = judge({**others, place("cpu:4"): failing}, FREE)
        assert (point.outcome, point.verdict, point.comparison) == (
            without.outcome, without.verdict, without.comparison,
        )  # fmt: skip


class TestUnits:
    SPEEDS = st.lists(
        st.tuples(st.floats(0.2, 5), st.floats(0.2, 5), st.floats(0.2, 5)), min_size=3, max_size=10
    )

    @given(SPEEDS, st.permutations(["cpu:1", "cpu:2", "gpu:1"]))
    def test_the_order_of_the_variants_does_not_matter(
        self, speeds: list[tuple[float, float, float]], order: list[str]
    ) -> None:
        by_name = dict(zip(["cpu:1", "cpu:2", "gpu:1"], zip(*speeds, strict=True), strict=True))
        one, other = (
            judge({place(name): [whole(1 / speed) for speed in by_name[name]] for name in names},
                  FREE)
            for names in (by_name, order)
        )  # fmt: skip
        assert (one.outcome, one.verdict, one.comparison) == (
            other.outcome, other.verdict, other.comparison,
        )  # fmt: skip

    @given(SPEEDS, st.floats(1e-6, 1e6))
    def test_the_unit_of_time_does_not_matter(
        self, speeds: list[tuple[float, float, float]], factor: float
    ) -> None:
        names = ["cpu:1", "cpu:2", "gpu:1"]
        one, other = (
            judge({place(name): [whole(times / speed) for speed in own]
                   for name, own in zip(names, zip(*speeds, strict=True), strict=True)}, FREE)
            for times in (1.0, factor)
        )  # fmt: skip
        if one.comparison and other.comparison and one.comparison.larger == other.comparison.larger:
            assert one.comparison.speed.times == pytest.approx(other.comparison.speed.times)
            assert one.comparison.speed.low == pytest.approx(other.comparison.speed.low)

    def test_steps_and_whole_runs_say_the_same(self) -> None:
        steps = judge(
            runs(cpu_1=[paced(5 * one) for one in NEAR], gpu_1=[paced(20 * one) for one in NEAR]),
            FREE,
        )
        assert (steps.measure, steps.unit) == ("pace", "step")
        assert steps.verdict == judged(cpu_1=5, gpu_1=20).verdict

    def test_larger_batches_are_counted_by_their_samples(self) -> None:
        small = [paced(100, samples_per_step=8.0)] * 3
        large = [paced(50, samples_per_step=64.0)] * 3
        point = judge(runs(cpu_1=small, gpu_1=large), FREE)
        assert point.unit == "sample"
        assert point.comparison.speed.times == pytest.approx(4.0)


class TestBreakEven:
    def test_a_longer_start_is_made_up_for(self) -> None:
        small = [paced(10, fixed_s=1.0, steps_per_epoch=50.0)] * 3
        large = [paced(100, fixed_s=fixed_s) for fixed_s in (9.1, 10.0, 10.9)]
        point = judge(runs(cpu_1=small, gpu_1=large), FREE)
        steps, epochs = point.break_even
        # Each step is 0.09 s faster: 9 s take 100.
        assert (steps.unit, epochs.unit) == ("step", "epoch")
        assert [steps.low, steps.at, steps.high] == pytest.approx([90, 100, 110])
        assert [epochs.low, epochs.at, epochs.high] == pytest.approx([1.8, 2.0, 2.2])

    @pytest.mark.parametrize(
        ("speed", "fixed_s"), [(100.0, 0.5), (5.0, 9.0)], ids=["starts sooner", "slower"]
    )
    def test_there_is_none(self, speed: float, fixed_s: float) -> None:
        large = [paced(speed, fixed_s=fixed_s)] * 3
        assert judge(runs(cpu_1=[paced(10)] * 3, gpu_1=large), FREE).break_even == ()

    @given(
        st.floats(1, 100), st.floats(1.1, 50), st.floats(0, 10), st.floats(0.5, 100),
    )  # fmt: skip
    def test_at_it_both_have_taken_as_long(
        self, slow: float, times: float, first_s: float, later_s: float
    ) -> None:
        small, large = [paced(slow, fixed_s=first_s)] * 3, [
            paced(slow * times, fixed_s=first_s + later_s)
        ] * 3  # fmt: skip
        (steps,) = judge(runs(cpu_1=small, gpu_1=large), FREE).break_even
        took = [one[0].fixed_s + steps.at / one[0].steps_per_s for one in (small, large)]
        assert math.isclose(*took, rel_tol=1e-6)


class TestRemarks:
    @pytest.mark.parametrize(
        ("took_s", "import_s", "is_said"),
        [(1.0, 0.4, False), (1.0, 0.6, True), (0.2, 0.04, False), (0.2, 0.06, True)],
    )
    def test_mostly_imports(self, took_s: float, import_s: float, is_said: bool) -> None:
        own = [whole(took_s, import_s=import_s)] * 3
        point = judge(runs(cpu_1=own, cpu_2=own), FREE)
        assert any("the work is too small" in note for note in point.notes) == is_said

    def test_long_imports_are_shown_as_durations(self) -> None:
        own = [whole(130.0, import_s=100.0)] * 3
        point = judge(runs(cpu_1=own, cpu_2=own), FREE)
        assert point.notes[0].startswith("Imports took 1 min 40 s of the run time of 2 min 10 s:")

    @pytest.mark.parametrize(
        ("idle", "said"),
        [
            ([2, 2, 2], "On gpu:2, no GPU was ever busy"),
            ([2, 1, 2], "Of the 2 GPUs of gpu:2, 1 was never busy."),
            ([0, 1, 2], None),
            ([2, None, 2], None),
        ],
    )
    def test_gpus_that_were_not_seen_busy(self, idle: list[int | None], said: str | None) -> None:
        own = [whole(1.0, idle_gpus=count) for count in idle]
        point = judge(runs(cpu_1=[whole(1.0)] * 3, gpu_2=own), FREE)
        found = [note for note in point.notes if "ever busy" in note or "never busy" in note]
        assert bool(found) == (said is not None)
        assert all(note.startswith(said) for note in found)

    def test_a_program_that_needs_a_gpu_gets_advice(self) -> None:
        cores = {place(name): [broken()] for name in ("cpu:1", "cpu:8")}
        point = judge({**cores, **whole_runs(gpu_1=NEAR)}, FREE)
        assert point.verdict == "Not enough evidence: only 1 GPU could be measured"
        assert any("`.to(device)`" in note for note in point.notes)
        point = judge({**cores, place("gpu:1"): [broken()]}, FREE)
        assert not any("`.to(device)`" in note for note in point.notes)
