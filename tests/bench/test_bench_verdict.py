"""The sentences of `teho bench`, on made-up figures."""

from __future__ import annotations

import msgspec
import pytest
from gpu_scenario import made_up

from teho.bench.verdict import notes_of, number_text, place_text, verdict_of
from teho.model.bench import Amortisation, Bench, Crossover, Left
from teho.model.document import Table
from teho.show.build.bench import bench_document
from teho.show.build.bench_tables import tables_of
from teho.show.html.page import render_html
from teho.show.plot.bench import draw
from teho.show.plot.drawn import inlined
from teho.show.text.document import render_text


def text_of(bench: Bench, width: int) -> str:
    return render_text(bench_document(bench), width=width, color=False, detail="why")


def page_of(bench: Bench) -> str:
    pictures = [inlined(draw(one, "svg")) for one in bench.results if one.timings]
    return render_html(bench_document(bench), pictures)


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
        "Kernel: 2 cores beat 1 core from 100 systems on, 1.8 times as fast at 10,000 systems "
        "(8 × 8)."
    )


def test_equal_groups_share_a_sentence() -> None:
    said = verdict(
        crossing("never", "9 × 9", times=1.02),
        crossing("always", times=6.0, last=10),
        crossing("always", "64 × 64"),
    )
    assert said == (
        "Kernel: 2 cores beat 1 core at all sizes, 1.8 to 6 times as fast at the largest size "
        "(8 × 8, 64 × 64); not clearly faster, equally fast at 10,000 systems (9 × 9)."
    )


def test_a_placement_that_is_never_faster_is_not_reported_as_faster() -> None:
    said = verdict(crossing("never", times=0.2))
    assert said == (
        "Kernel: 2 cores are not clearly faster than 1 core, 0.2 times as fast at 10,000 systems."
    )


def test_a_gpu_is_compared_with_all_cores_also_end_to_end() -> None:
    said = verdict(
        crossing(),
        crossing(fast="gpu:1"),
        crossing(fast="gpu:1", slow="cpu:2", high=1000),
        crossing("never", fast="gpu:1", slow="cpu:2", phase="end to end"),
    )
    assert said == (
        "Kernel: 1 GPU beats 2 cores from 1,000 systems on, 1.8 times as fast at 10,000 systems "
        "(8 × 8). End to end: 1 GPU is not clearly faster than 2 cores, 1.8 times as fast at "
        "10,000 systems."
    )


def test_what_a_cpu_has_another_word_for_is_named() -> None:
    said = verdict(
        crossing("always", fast="gpu:1", phase="on the device", slow_phase="host memory")
    )
    assert said.startswith(
        "On the device: 1 GPU beats 1 core (host memory) at all sizes, 1.8 times"
    )


def test_without_timings_it_says_why() -> None:
    assert verdict(timings=()) == (
        "No library could be timed: PyTorch 2.13.0+cpu is a build for CPUs only."
    )


def test_rates_come_with_the_share_of_the_peak_if_that_is_known() -> None:
    (measured,) = made_up("matmul").results
    said = "Highest rates: FP64 400 GFLOP/s (0.6 % of its peak, 67.0 TFLOP/s), FP32"
    assert measured.verdict.startswith(said)
    notes = [table.note for table in tables_of(measured)]
    peaks = "Peak of 1 GPU, published by its maker: FP64 67.0 TFLOP/s, FP32 67.0 TFLOP/s"
    assert notes[:2] == [peaks, ""]  # which says nothing of what copies take
    timings = tuple(one for one in measured.timings if one.placement != "gpu:1")
    said = verdict_of(msgspec.structs.replace(measured, timings=timings))
    assert said.startswith("Highest rates: FP64 12.0 GFLOP/s, FP32 12.0 GFLOP/s.")


def test_a_plot_has_the_peak_that_is_known() -> None:
    pytest.importorskip("matplotlib")
    (measured,) = made_up("matmul").results
    assert "peak of 1 GPU" in draw(measured, "svg").decode()
    (measured,) = made_up("solve").results  # of times
    assert "peak of" not in draw(measured, "svg").decode()


def amortisation(batch: int, run_s: float, against: str = "cpu:8") -> Amortisation:
    point = {"batch": batch, "images": 8192, "workers": 4, "prefetch": 2}
    return Amortisation(
        group="", point=point, library="torch", placement="gpu:1",
        phase="on the device", against=against, first_s=3.0, run_s=run_s, against_s=4.0,
        runs=3.0 / (4.0 - run_s),
    )  # fmt: skip


def shown(*amortisations: Amortisation, axis: str = "batch") -> Table:
    (measured,) = made_up().results
    changed = {"axis": axis, "timings": (), "crossovers": (), "amortisations": amortisations}
    (table,) = tables_of(msgspec.structs.replace(measured, **changed))
    return table


def test_a_feed_makes_up_for_its_start_at_its_fastest_batch() -> None:
    table = shown(
        *(amortisation(*of) for of in ((64, 2.0), (256, 0.5), (1024, 0.6))),
        amortisation(64, 1.0, "cpu:1"),
    )
    told = [(row["pair"], row["phase"], row["at"], row["run"]) for row in table.rows]
    assert told == [
        ("1 GPU against 8 cores", "on the device", "batch 256", "500 ms"),
        ("1 GPU against 1 core", "on the device", "batch 64", "1.00 s"),
    ]
    assert "workers" not in str(table.rows)  # which are the loader's
    assert table.note.startswith("A run is one pass over 8,192 images, at the batch size with")


def test_a_start_and_copies_are_shared_out_among_a_hundred_runs() -> None:
    found = msgspec.structs.replace(amortisation(64, 2.0), first_s=50.0)
    (row,) = shown(found).rows
    assert (row["run"], row["amortised"]) == ("2.00 s", "2.50 s")


def test_every_problem_makes_up_for_its_start_at_its_largest() -> None:
    table = shown(*made_up().results[0].amortisations, axis="systems")
    assert [(row["group"], row["at"]) for row in table.rows] == [
        ("8 × 8", "1,000,000 systems"), ("64 × 64", "100,000 systems"),
        ("512 × 512", "1,000 systems"), ("4096 × 4096", "10 systems"),
        ("10000 × 10000", "1 system"),
    ]  # fmt: skip
    assert table.note == ""


def test_phases_are_compared_in_tables_of_their_own() -> None:
    """Who has other groups gets no rows of nothing."""
    (measured,) = made_up().results
    feeds = (crossing(), crossing(group="64 × 64"), crossing("never", phase="end to end"))
    changed = msgspec.structs.replace(measured, crossovers=feeds, amortisations=())
    kernel, whole = tables_of(changed)[-2:]
    assert kernel.title == "Kernel: which placement was faster, and from which number of systems"
    assert [row["from"] for row in kernel.rows] == ["100", "100"]
    assert [(row["from"], row["times"]) for row in whole.rows] == [("never", "1.8")]


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
    for line in text_of(made_up(name), width=width).splitlines():
        assert len(line) <= width


def test_text_and_page_say_what_ended_and_what_throttled() -> None:
    bench = made_up()
    text = " ".join(text_of(bench, width=100).split())
    page = page_of(bench).replace("\N{NO-BREAK SPACE}", " ")
    for said in (
        "PyTorch on 1 GPU is not compared: PyTorch 2.13.0+cpu is a build for CPUs only.",
        "CuPy on 1 GPU: memory is full at 1 system of 10000 × 10000: OutOfMemoryError",
        "The GPU was slowed by its power cap in 80 of 80 timings.",
    ):
        assert said in text
        assert said in page


def test_sweeps_that_were_cut_short_are_counted() -> None:
    (measured,) = made_up().results
    late = Left(
        point=measured.left[0].point, library="numpy", placement="cpu:1", why="time", text="late"
    )
    notes = notes_of(msgspec.structs.replace(measured, left=(late, late)))
    assert "2 series of sizes were cut short because the time was over: increase `--for`." in notes


def test_a_missing_feature_is_reported_for_its_device() -> None:
    (measured,) = made_up("matmul").results
    lacks = {"point": measured.left[0].point, "why": "unsupported", "text": "it lacks it"}
    sides = (("numpy", "cpu:1"), ("numpy", "cpu:8"), ("torch", "cpu:1"), ("cupy", "gpu:1"))
    left = tuple(Left(library=name, placement=place, **lacks) for name, place in sides)
    notes = notes_of(msgspec.structs.replace(measured, left=left))
    assert "FP32 on the CPU was not measured with NumPy, PyTorch: it lacks it." in notes
    assert "FP32 on the GPU was not measured with CuPy: it lacks it." in notes
