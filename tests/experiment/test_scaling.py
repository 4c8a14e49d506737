"""How a program scales, from runs of which the truth is known."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teho.experiment import scaling_fit
from teho.experiment.scaling import EFFICIENT_SPEEDUP, scaling
from teho.experiment.scaling_fit import fit
from teho.experiment.spread import spread_of
from teho.model.scaled import Scaled, SizeRun

DOUBLINGS = (1, 2, 4, 8, 16)
SEEDS = range(30)


def throughputs(
    sigma: float = 0.0,
    kappa: float = 0.0,
    *,
    sizes: Sequence[int] = DOUBLINGS,
    repeats: int = 3,
    noise: float = 0.02,
    seed: int = 0,
) -> dict[int, list[float]]:
    """Return runs by the Universal Scalability Law, with log-normal noise."""
    chance = random.Random(seed)
    return {
        n: [
            3.0 * n / (1 + sigma * (n - 1) + kappa * n * (n - 1)) * chance.lognormvariate(0, noise)
            for _ in range(repeats)
        ]
        for n in sizes
    }


def runs_of(found: Mapping[int, Sequence[float]]) -> dict[int, list[SizeRun]]:
    """Return whole runs of a program with one unit of work."""
    return {n: [SizeRun(wall_s=1 / x, work_per_s=x) for x in own] for n, own in found.items()}


def scaled_of(runs, kind="strong", **more) -> Scaled:
    return scaling(kind, runs, argv=["train", "--token=x"], worker="GPU", elapsed_s=9.0, **more)


def holds(estimate, truth: float) -> bool:
    return estimate.low <= truth <= estimate.high


# ---- fits ----


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that hundreds of fits take seconds."""
    monkeypatch.setattr(scaling_fit, "_DRAWS", 200)


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize(("sigma", "kappa"), [(0.05, 0.002), (0.2, 0.0), (0.02, 0.02)])
def test_the_law_that_made_the_runs_is_found_again(sigma: float, kappa: float) -> None:
    fits = [fit("usl", spread_of(throughputs(sigma, kappa, seed=seed)), 1) for seed in SEEDS]
    assert sum(holds(one.contention, sigma) for one in fits) >= 26
    assert sum(holds(one.coherency, kappa) for one in fits) >= 26
    assert sum(holds(one.one_work_per_s, 3.0) for one in fits) >= 26
    # An interval that holds everything is none.
    assert all(one.contention.high - one.contention.low < 0.1 for one in fits)
    if not kappa:
        assert sum(one.peak_n is not None for one in fits) <= 10


@pytest.mark.usefixtures("few_draws")
def test_amdahls_serial_fraction_is_found_again() -> None:
    drawn = [throughputs(0.1, sizes=(1, 2, 8), seed=seed) for seed in SEEDS]
    fits = [fit("amdahl", spread_of(one), 1) for one in drawn]
    assert sum(holds(one.contention, 0.1) for one in fits) >= 26
    assert all(one.contention.high - one.contention.low < 0.1 for one in fits)
    assert all(one.coherency is None and one.peak_n is None for one in fits)


def test_without_noise_the_parameters_are_exact() -> None:
    found = fit("usl", spread_of(throughputs(0.03, 0.005, noise=0.0)), 1)
    assert found.contention.value == pytest.approx(0.03)
    assert found.coherency.value == pytest.approx(0.005)
    assert found.one_work_per_s.value == pytest.approx(3.0)
    assert found.off_percent == pytest.approx(0.0, abs=1e-6)


def test_a_thousand_workers_are_fitted_as_exactly() -> None:
    sizes = [2**power for power in range(11)]
    found = fit("usl", spread_of(throughputs(1e-3, 1e-6, sizes=sizes, noise=0.0)), 1)
    assert found.contention.value == pytest.approx(1e-3)
    assert found.coherency.value == pytest.approx(1e-6)


def test_no_parameter_is_below_zero() -> None:
    # Twice the workers do more than twice the work, as where data fit into caches.
    found = fit("usl", spread_of({n: [n**1.1, n**1.1 * 1.01] for n in DOUBLINGS}), 1)
    assert found.contention.value == found.coherency.value == 0.0
    assert found.contention.low == found.coherency.low == 0.0


@pytest.mark.parametrize(("law", "fewest"), [("amdahl", 3), ("usl", 4)])
def test_fewer_sizes_than_parameters_and_one_are_not_fitted(law, fewest: int) -> None:
    sizes = DOUBLINGS[:fewest]
    assert fit(law, spread_of(throughputs(sizes=sizes)), 1)
    assert fit(law, spread_of(throughputs(sizes=sizes[:-1])), 1) is None
    assert fit(law, spread_of(throughputs(sizes=sizes, repeats=1)), 1) is None


def test_a_peak_is_shown_if_it_was_passed() -> None:
    found = fit("usl", spread_of(throughputs(0.02, 0.02)), 1)
    assert holds(found.peak_n, math.sqrt(0.98 / 0.02))


def test_no_peak_is_shown_beyond_twice_the_largest_size() -> None:
    far = throughputs(0.02, 5e-4, noise=1e-4)  # at 44 workers
    found = fit("usl", spread_of(far), 1)
    assert found.coherency.low > 0
    assert found.peak_n is None
    assert found.curve[0].n == 1
    assert found.curve[-1].n == 32


def test_the_curve_passes_through_the_runs_within_its_band() -> None:
    found = fit("usl", spread_of(throughputs(0.05, 0.002)), 1)
    truth = {n: n / (1 + 0.05 * (n - 1) + 0.002 * n * (n - 1)) for n in DOUBLINGS}
    by_n = {round(point.n, 6): point for point in found.curve}
    for n, speed_up in truth.items():
        point = by_n[n]
        assert point.low <= point.speed_up <= point.high
        assert point.speed_up == pytest.approx(speed_up, rel=0.1)


# ---- verdicts ----


def test_a_linear_program_should_use_all_tried_sizes() -> None:
    scaled = scaled_of(runs_of(throughputs()))
    assert (scaled.outcome, scaled.efficient_n) == ("pays_to", 16)
    assert scaled.verdict.startswith("Use up to 16 GPUs: ")
    assert scaled.verdict.endswith(". More GPUs were not tried")
    last = scaled.sizes[-1]
    assert holds(last.speed_up, 16)
    assert last.efficiency_percent == pytest.approx(100, abs=10)
    assert last.bill_ratio == pytest.approx(1, abs=0.1)
    assert last.wall_s == pytest.approx(1 / 48, rel=0.1)
    assert scaled.command == ("train", "--token=•••")


def test_a_serial_program_should_use_one_worker() -> None:
    scaled = scaled_of(runs_of(throughputs(1.0)))
    assert (scaled.outcome, scaled.efficient_n) == ("no_gain", None)
    assert re.match(r"1 GPU is enough: 2 GPUs are (0\.9|1\.0)\d times as fast as 1", scaled.verdict)
    assert [step.from_n for step in scaled.steps] == [1, 1, 1, 1]
    assert holds(scaled.fits[-1].contention, 1.0)


def test_a_retrograde_program_should_use_only_sizes_before_its_peak() -> None:
    scaled = scaled_of(runs_of(throughputs(0.02, 0.02)))
    assert (scaled.outcome, scaled.efficient_n) == ("pays_to", 4)
    assert [(step.from_n, step.to_n, step.is_efficient) for step in scaled.steps] == [
        (1, 2, True), (2, 4, True), (4, 8, False), (4, 16, False),
    ]  # fmt: skip
    assert ". 8 GPUs are 1.1" in scaled.verdict
    assert scaled.steps[-1].needed == pytest.approx(EFFICIENT_SPEEDUP**2)
    assert scaled.steps[-1].bill_ratio == pytest.approx(4 / scaled.steps[-1].speed.value)


def test_noise_is_never_called_a_gain() -> None:
    outcomes = [
        scaled_of(runs_of(throughputs(1.0, noise=0.3, seed=seed, sizes=(1, 2)))).outcome
        for seed in SEEDS
    ]
    assert outcomes.count("pays_to") <= 3
    assert outcomes.count("not_enough_evidence") > 0


def test_a_speed_up_just_at_the_limit_is_mostly_open() -> None:
    edge = [
        scaled_of(runs_of(throughputs(1 / 3, seed=seed, sizes=(1, 2)))).steps[0].is_efficient
        for seed in SEEDS
    ]
    assert edge.count(None) >= 26


def test_an_open_result_is_not_yet_clear() -> None:
    runs = runs_of({1: [1.0, 1.01, 0.99], 2: [1.0, 1.6, 2.2]})
    alone = scaled_of(runs)
    assert alone.steps[0].is_efficient is None
    assert alone.verdict.startswith("Not yet clear whether 2 GPUs are worth it: 2 GPUs are 1.5")
    assert alone.verdict.endswith(", and a speed-up of at least 1.5 is needed")
    # After a size that is fast enough:
    beyond = scaled_of(runs_of({1: [1.0, 1.01, 0.99], 2: [1.9, 2.0, 1.95], 4: [2.8, 2.9, 3.0]}))
    assert (beyond.efficient_n, beyond.steps[-1].is_efficient) == (2, None)
    assert ". Not yet clear whether 4 GPUs are worth it: 4 GPUs are " in beyond.verdict
    # A result below the limit is a firm no:
    firm = scaled_of(runs_of({1: [1.0, 1.01, 0.99], 2: [1.0, 1.02, 1.01]}))
    assert firm.steps[0].is_efficient is False
    assert "clear" not in firm.verdict


def test_two_sizes_are_judged_and_not_fitted() -> None:
    scaled = scaled_of(runs_of(throughputs(sizes=(1, 2))))
    assert (scaled.efficient_n, scaled.fits) == (2, ())
    assert [*scaled.notes] == [
        (
            "No scaling law was fitted: this needs 3 different numbers of GPUs, but only 2 were "
            "measured."
        )
    ]


def test_two_doublings_may_be_clear_if_one_is_open() -> None:
    runs = runs_of({1: [1.0, 1.01, 0.99], 2: [1.0, 1.6, 2.2], 4: [3.9, 4.0, 4.1]})
    scaled = scaled_of(runs)
    assert [(step.from_n, step.to_n, step.is_efficient) for step in scaled.steps] == [
        (1, 2, None), (1, 4, True),
    ]  # fmt: skip
    assert scaled.efficient_n == 4


def test_a_size_that_failed_is_reported_and_not_counted() -> None:
    failed = SizeRun(wall_s=1.0, exit_code=1, why="it ended with exit code 1")
    runs = runs_of(throughputs(sizes=(1, 2, 4)))
    scaled = scaled_of({**runs, 8: [failed, failed]})
    assert scaled.sizes[-1].speed_up is None
    assert scaled.sizes[-1].runs[0].why == failed.why
    assert scaled.verdict.endswith(". 8 GPUs could not be measured")
    beside = scaled_of({**runs, 8: [failed], 16: runs_of(throughputs())[16]})
    assert (beside.efficient_n, beside.steps[-1].from_n) == (16, 4)


def test_a_failed_run_is_in_the_verdict() -> None:
    runs = runs_of(throughputs(sizes=(1, 2)))
    runs[2].append(SizeRun(wall_s=1.0, exit_code=1, why="it ended with exit code 1"))
    assert ", although 1 of 4 runs failed. " in scaled_of(runs).verdict


@pytest.mark.parametrize("runs", [{}, {1: [], 2: []}, {2: [SizeRun(wall_s=0.1, why="x")]}])
def test_without_measured_runs_there_is_not_enough_evidence(runs) -> None:
    scaled = scaled_of(runs)
    assert (scaled.outcome, scaled.base_n) == ("not_enough_evidence", None)
    assert scaled.verdict == "Not enough evidence: no run could be measured"


def test_one_size_cannot_be_compared() -> None:
    scaled = scaled_of(runs_of(throughputs(sizes=(1,))))
    assert scaled.outcome == "not_enough_evidence"
    assert scaled.verdict == "Not enough evidence: only 1 GPU could be measured"


def test_without_repeated_runs_there_is_not_enough_evidence() -> None:
    scaled = scaled_of(runs_of(throughputs(repeats=1)))
    assert scaled.outcome == "not_enough_evidence"
    assert scaled.verdict.startswith(
        "Not enough evidence, because no run was repeated: 2 GPUs are "
    )
    assert scaled.sizes[1].speed_up.low is None
    assert scaled.fits == ()
    assert any(note.startswith("No run was repeated") for note in scaled.notes)


def test_without_one_worker_the_smallest_size_is_the_base() -> None:
    scaled = scaled_of(runs_of(throughputs(sizes=(2, 4, 8))))
    assert (scaled.base_n, scaled.efficient_n) == (2, 8)
    assert scaled.sizes[-1].efficiency_percent == pytest.approx(100, abs=10)
    assert scaled.notes[0] == "1 GPU was not tried, so all runs are compared with 2 GPUs."


def test_weak_scaling_is_of_the_work_per_second() -> None:
    found = {n: [0.9 ** math.log2(n) * n * x for x in (1.0, 1.01)] for n in DOUBLINGS}
    runs = {n: [SizeRun(wall_s=n / x, work_per_s=x) for x in own] for n, own in found.items()}
    scaled = scaled_of(runs, kind="weak")
    assert scaled.sizes[1].efficiency_percent == pytest.approx(90)
    assert scaled.sizes[1].bill_ratio == pytest.approx(1 / 0.9)
    assert " times the work per second of 1 " in scaled.verdict
    assert [one.law for one in scaled.fits] == ["usl"]


# ---- the bill ----


def test_the_bill_is_the_cost_for_the_same_work() -> None:
    # Steps of windows of equal length: twice the cost, for 1.6 times the steps.
    runs = {
        n: [SizeRun(wall_s=10.0, work_per_s=x * rate, cost=5.0 * n, energy_j=100.0 * n)
            for x in (1.0, 1.01)]
        for n, rate in ((1, 10.0), (2, 16.0))
    }  # fmt: skip
    scaled = scaled_of(runs, unit="step", cost_unit="BU")
    two = scaled.sizes[1]
    assert scaled.cost_unit == "BU"
    assert (two.cost, two.energy_j) == (10.0, 200.0)
    assert two.bill_ratio == pytest.approx(1.25)
    assert two.energy_ratio == pytest.approx(1.25)


@pytest.mark.parametrize("cost", [None, 0.0])
def test_without_a_cost_the_bill_is_workers_times_time(cost: float | None) -> None:
    runs = {
        1: [SizeRun(wall_s=8.0, work_per_s=1 / 8, cost=cost, energy_j=None)] * 2,
        2: [SizeRun(wall_s=5.0, work_per_s=1 / 5, cost=4.0, energy_j=7.0)] * 2,
    }
    scaled = scaled_of(runs, cost_unit="BU")
    assert scaled.cost_unit == ""
    assert scaled.sizes[1].bill_ratio == pytest.approx(10 / 8)
    assert scaled.sizes[1].energy_j == 7.0
    assert scaled.sizes[1].energy_ratio is None


# ---- what must not matter ----


@settings(deadline=None, max_examples=5)
@given(st.floats(1e-6, 1e6), st.integers(0, 1000))
def test_the_unit_of_throughput_does_not_matter(factor: float, seed: int) -> None:
    found = throughputs(0.1, 0.001, sizes=(1, 2, 4, 8), noise=0.05, seed=seed)
    other = {n: [factor * x for x in own] for n, own in found.items()}
    one, two = scaled_of(runs_of(found)), scaled_of(runs_of(other))
    assert one.verdict == two.verdict
    assert [size.speed_up.low for size in one.sizes] == pytest.approx(
        [size.speed_up.low for size in two.sizes]
    )
    for before, after in zip(one.fits, two.fits, strict=True):
        assert after.contention.value == pytest.approx(before.contention.value, abs=1e-9)
        assert after.contention.high == pytest.approx(before.contention.high, abs=1e-9)


def test_the_same_runs_give_the_same_answer() -> None:
    runs = runs_of(throughputs(0.1, 0.001))
    assert scaled_of(runs) == scaled_of(runs)
    assert scaled_of(dict(reversed(runs.items()))) == scaled_of(runs)


@pytest.mark.parametrize("repeats", [2, 3, 5])
def test_an_interval_contains_the_truth_with_its_confidence(repeats: int) -> None:
    held = [
        holds(spread_of(throughputs(sizes=(1, 2), repeats=repeats, seed=seed)).ratio(2, 1), 2.0)
        for seed in range(400)
    ]
    assert sum(held) >= 0.93 * len(held)
