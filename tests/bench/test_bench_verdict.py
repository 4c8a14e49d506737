"""The sentences of `teho bench`, on made-up figures."""

from __future__ import annotations

import msgspec
import pytest
from gpu_scenario import made_up

from teho.bench.verdict import notes_of, number_text, place_text, verdict_of
from teho.model.bench import Crossover, Left
from teho.show.bench_html import render_bench_html
from teho.show.bench_text import render_bench


def crossing(outcome: str = "from", group: str = "8 × 8", **more) -> Crossover:
    values = {
        "phase": "kernel", "slow": "cpu:1", "fast": "cpu:2", "low": 10, "high": 100,
        "estimate": 30, "last": 10_000, "times": 1.84, "libraries": ("numpy", "torch"), **more,
    }  # fmt: skip
    return Crossover(outcome=outcome, group=group, **values)


def verdict(*crossovers: Crossover, **more) -> str:
    (measured,) = made_up().results
    return verdict_of(msgspec.structs.replace(measured, crossovers=crossovers, **more))


def test_the_verdict_says_from_where_on() -> None:
    assert verdict(crossing()) == (
        "2 cores beat 1 core from 100 systems on, 1.8 times at 10,000 (8 × 8)."
    )


def test_groups_that_are_alike_are_said_together() -> None:
    said = verdict(crossing("always"), crossing("always", "64 × 64"), crossing("never", "9 × 9"))
    assert said == (
        "2 cores beat 1 core throughout (8 × 8, 64 × 64); not beyond noise at the largest (9 × 9)."
    )


def test_who_never_wins_is_not_said_to() -> None:
    said = verdict(crossing("never", times=0.2))
    assert said == "2 cores are not faster than 1 core beyond noise at the largest."


def test_a_gpu_is_held_against_all_cores_and_end_to_end_too() -> None:
    said = verdict(
        crossing(),
        crossing(fast="gpu:1"),
        crossing(fast="gpu:1", slow="cpu:2", high=1000),
        crossing("never", fast="gpu:1", slow="cpu:2", phase="end to end"),
    )
    assert said == (
        "1 GPU beats 2 cores from 1,000 systems on, 1.8 times at 10,000 (8 × 8). "
        "End to end, 1 GPU is not faster than 2 cores beyond noise at the largest."
    )


def test_what_a_cpu_has_another_word_for_is_named() -> None:
    said = verdict(
        crossing("always", fast="gpu:1", phase="on the device", slow_phase="host memory")
    )
    assert said == "1 GPU beats 1 core (host memory) throughout (8 × 8)."


def test_without_timings_it_says_why() -> None:
    assert verdict(timings=()) == (
        "Nothing could be timed: PyTorch 2.13.0+cpu is a build for CPUs alone."
    )


def test_rates_come_with_the_share_of_the_peak_where_that_is_known() -> None:
    assert (
        made_up("matmul").results[0].verdict.startswith("At most: FP64 400 GFLOP/s (0.6 % of its")
    )
    (measured,) = made_up("matmul").results
    timings = tuple(one for one in measured.timings if one.placement != "gpu:1")
    said = verdict_of(msgspec.structs.replace(measured, timings=timings))
    assert said.startswith("At most: FP64 12.0 GFLOP/s, FP32 12.0 GFLOP/s.")


@pytest.mark.parametrize(
    ("axis", "place", "text"),
    [
        ("systems", 1, "1 system"),
        ("systems", 3000, "3,000 systems"),
        ("size", 512, "size 512"),
        ("batch", 64, "batch 64"),
        ("bytes", 1024**2, "1.00 MiB"),
    ],
)
def test_places_read_as_in_a_sentence(axis: str, place: float, text: str) -> None:
    assert place_text(axis, place) == text


@pytest.mark.parametrize(
    ("value", "text"), [(1, "1"), (1.84, "1.8"), (33.3, "33"), (171.2, "170"), (10000, "10,000")]
)
def test_numbers_have_as_many_digits_as_mean_something(value: float, text: str) -> None:
    assert number_text(value) == text


@pytest.mark.parametrize("name", ["solve", "matmul"])
@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_longer_than_the_terminal(name: str, width: int) -> None:
    for line in render_bench(made_up(name), width=width, color=False).splitlines():
        assert len(line) <= width


def test_text_and_page_say_what_ended_and_what_throttled() -> None:
    bench = made_up()
    text = " ".join(render_bench(bench, width=100, color=False).split())
    for said in (
        "PyTorch on 1 GPU takes no part: PyTorch 2.13.0+cpu is a build for CPUs alone.",
        "CuPy on 1 GPU: memory ends at 1 system of 10000 × 10000: OutOfMemoryError",
        "The GPU was slowed by its power cap in 80 of 80 timings.",
    ):
        assert said in text
        assert said in render_bench_html(bench)


def test_sweeps_that_were_cut_short_are_counted() -> None:
    (measured,) = made_up().results
    late = Left(
        point=measured.left[0].point, library="numpy", placement="cpu:1", why="time", text="late"
    )
    notes = notes_of(msgspec.structs.replace(measured, left=(late, late)))
    assert "2 sweeps were cut short for time: `--for` gives more." in notes
