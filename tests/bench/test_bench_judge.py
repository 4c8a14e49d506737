"""What follows from samples, on made-up ones."""

from __future__ import annotations

import random
from itertools import combinations
from statistics import median

import msgspec
import pytest

from teho.bench.judge import Samples, agreement_of, amortisation_of, crossover_of, timing_of
from teho.model.bench import Timing

OF = ({"systems": 1}, "torch", "cpu:1")


def samples(times_s, **more) -> Samples:
    return Samples({"systems": 1}, "numpy", "cpu:1", "kernel", 1.0, tuple(times_s), 1, **more)


def timing(
    place: float, median_s: float, placement: str, library: str = "numpy", *, noise: float = 0.0,
    phase: str = "kernel", first_s: float = 0.0,
) -> Timing:  # fmt: skip
    found = timing_of(samples([median_s] * 10))
    return msgspec.structs.replace(
        found,
        point={"systems": place},
        library=library,
        placement=placement,
        phase=phase,
        first_s=first_s or median_s,
        low_s=median_s * (1 - noise),
        high_s=median_s * (1 + noise),
    )


def test_the_interval_contains_the_median_with_its_confidence() -> None:
    drawn = random.Random(1)
    held = 0
    for _ in range(2000):
        found = timing_of(samples([drawn.lognormvariate(0, 1) for _ in range(12)]))
        held += found.low_s <= 1.0 <= found.high_s
    # 96.1 % for twelve (binomial); four standard deviations of 2000 draws are 1.7 %.
    assert 0.944 <= held / 2000 <= 0.978


@pytest.mark.parametrize("count", range(1, 14))
def test_the_interval_is_the_narrowest_that_is_sure_enough(count: int) -> None:
    found = timing_of(samples(range(1, count + 1)))
    rank = int(found.low_s)

    def misses(rank: int) -> float:
        # Every subset of samples that lie below the true median is as likely as any other.
        below = sum(len(list(combinations(range(count), k))) for k in range(rank))
        return 2 * below / 2**count

    if count >= 6:
        assert misses(rank) <= 0.05 < misses(rank + 1)
        assert found.noise_percent == pytest.approx(
            50 * (count + 1 - 2 * rank) / median(range(1, count + 1))
        )
    else:
        assert (found.low_s, found.high_s) == (1, count)
        assert found.noise_percent is None


def test_many_samples_have_an_interval() -> None:
    found = timing_of(samples([1.0 + i for i in range(5000)]))
    assert found.low_s < found.median_s < found.high_s


def test_rates_are_of_the_median_and_unknown_without_an_amount() -> None:
    found = timing_of(samples([2.0] * 10, flop=100.0), peak=200.0)
    assert (found.flop_per_s, found.bytes_per_s, found.peak_percent) == (50.0, None, 25.0)
    assert timing_of(samples([2.0] * 10, flop=100.0)).peak_percent is None
    assert timing_of(samples([2.0] * 10, bytes=100.0), peak=200.0).peak_percent == 25.0


def test_drift_is_the_last_quarter_against_the_first() -> None:
    assert timing_of(samples([1.0] * 6 + [1.5] * 2)).drift_percent == pytest.approx(50)
    assert timing_of(samples([1.0] * 7)).drift_percent is None


def test_agreement_is_relative_to_the_largest_figure() -> None:
    found = agreement_of(OF, [1000.0, 1.1], [1000.0, 1.0], 1.01e-4, "numpy on cpu:1")
    assert found.agrees
    assert found.error == pytest.approx(1e-4)
    assert not agreement_of(OF, [1000.0, 1.2], [1000.0, 1.0], 1e-4, "numpy on cpu:1").agrees


@pytest.mark.parametrize(
    ("figures", "reference"), [([None], [1.0]), ([1.0], [None]), ([1.0], [1.0, 2.0]), ([], [])]
)
def test_missing_figures_never_agree(figures, reference) -> None:
    found = agreement_of(OF, figures, reference, 1.0, "numpy on cpu:1")
    assert not found.agrees
    assert found.error is None


def crossing(*rows: tuple[float, float, float], noise: float = 0.0):
    timings = [
        one
        for place, slow_s, fast_s in rows
        for one in (
            timing(place, slow_s, "cpu:1", noise=noise),
            timing(place, fast_s, "gpu:1", "cupy", noise=noise),
        )
    ]
    return crossover_of(timings, "kernel", "cpu:1", "gpu:1", "systems", "8 × 8")


def test_a_crossover_is_between_two_points_where_the_lines_cross() -> None:
    # The CPU takes as long as there are systems, the GPU always 30.
    found = crossing((1, 1, 30), (10, 10, 30), (100, 100, 30), (1000, 1000, 30))
    assert (found.outcome, found.low, found.high) == ("from", 10, 100)
    assert found.estimate == pytest.approx(30)
    assert found.times == pytest.approx(1000 / 30)
    assert found.libraries == ("numpy", "cupy")


def test_a_lead_that_is_lost_again_does_not_count() -> None:
    assert crossing((1, 2, 1), (10, 1, 2), (100, 2, 1)).high == 100
    assert crossing((1, 2, 1), (10, 1, 2)).outcome == "never"


def test_within_noise_neither_is_faster() -> None:
    found = crossing((1, 1, 2), (10, 1, 0.95), (100, 1, 0.5), noise=0.1)
    assert (found.low, found.high) == (1, 100)
    assert 1 < found.estimate < 10  # where the medians' lines cut
    found = crossing((1, 1, 0.95), (10, 1, 0.5), noise=0.1)
    assert (found.outcome, found.low, found.high, found.estimate) == ("from", None, 10, None)
    assert crossing((1, 1, 0.95), noise=0.1).outcome == "never"


def test_one_that_always_wins_and_one_that_was_not_measured() -> None:
    found = crossing((1, 2, 1), (10, 2, 1))
    assert (found.outcome, found.low, found.high) == ("always", None, None)
    only = [timing(1, 1, "cpu:1"), timing(2, 1, "gpu:1")]
    assert crossover_of(only, "kernel", "cpu:1", "gpu:1", "systems", "") is None


def test_each_side_is_as_fast_as_its_fastest_library() -> None:
    timings = [
        timing(1, 3, "cpu:1"), timing(1, 2, "cpu:1", "jax"),
        timing(1, 9, "gpu:1", "cupy"), timing(1, 1, "gpu:1", "torch"),
    ]  # fmt: skip
    found = crossover_of(timings, "kernel", "cpu:1", "gpu:1", "systems", "")
    assert (found.times, found.libraries) == (2, ("jax", "torch"))


def test_a_gpus_memory_is_compared_with_a_cpus() -> None:
    timings = [
        timing(1, 8, "cpu:1", phase="host memory"), timing(1, 2, "gpu:1", phase="on the device"),
        timing(1, 9, "gpu:1", phase="host memory"),
    ]  # fmt: skip
    of = ("cpu:1", "gpu:1", "systems", "")
    assert crossover_of(timings, "on the device", *of) is None
    found = crossover_of(timings, "on the device", *of, "host memory")
    assert (found.times, found.phase, found.slow_phase) == (4, "on the device", "host memory")


def test_of_several_kernels_the_fastest_makes_up_for_its_start() -> None:
    timings = [
        timing(1, 5.0, "cpu:1", phase="python loop"),
        timing(1, 3.0, "gpu:1", phase="python loop"),
        timing(1, 1.0, "gpu:1", "jax", phase="fused loop", first_s=7.0),
        timing(1, 2.0, "gpu:1", "jax", phase="copy in"),
    ]
    (found,) = amortisation_of(timings, ("fused loop", "python loop"), "gpu:1", "cpu:1", "")
    assert (found.library, found.phase, found.first_s, found.runs) == (
        "jax",
        "fused loop",
        8.0,
        2.0,
    )
    assert (found.run_s, found.against_s) == (1.0, 5.0)


def test_data_on_a_gpu_are_compared_with_data_in_a_cpus_memory() -> None:
    timings = [
        timing(1, 3.0, "cpu:1", phase="loader"), timing(1, 5.0, "cpu:1", phase="host memory"),
        timing(1, 0.5, "gpu:1", phase="host memory"),  # which copies at every pass
        timing(1, 1.0, "gpu:1", phase="on the device", first_s=7.0),
        timing(1, 2.0, "gpu:1", phase="copy in"),
    ]  # fmt: skip
    of = (("on the device",), "gpu:1", "cpu:1", "")
    assert amortisation_of(timings, *of) == []
    (found,) = amortisation_of(timings, *of, ["host memory"])
    assert (found.first_s, found.runs) == (8.0, 2.0)


def test_a_gpu_makes_up_for_its_start_and_copies() -> None:
    timings = [
        timing(1, 11.0, "cpu:2"),
        timing(1, 1.0, "gpu:1", "cupy", first_s=41.0),
        timing(1, 8.0, "gpu:1", "cupy", phase="copy in"),
        timing(1, 2.0, "gpu:1", "cupy", phase="copy out"),
    ]
    (found,) = amortisation_of(timings, ("kernel",), "gpu:1", "cpu:2", "8 × 8")
    assert (found.first_s, found.runs) == (50.0, 5.0)
    # Without the times of the copies, the number of runs is not known.
    assert amortisation_of(timings[:2], ("kernel",), "gpu:1", "cpu:2", "") == []
    slower = [timing(1, 0.5, "cpu:2"), *timings[1:]]
    assert amortisation_of(slower, ("kernel",), "gpu:1", "cpu:2", "") == []
