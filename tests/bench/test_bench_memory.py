"""How busy a GPU was, and how much memory a phase needed; missing is never zero."""

from __future__ import annotations

import msgspec
import pytest
from gpu_scenario import made_up
from served import serve
from standins import GPU

from teho.bench.judge import Samples, timing_of
from teho.bench.verdict import notes_of
from teho.bench.watch import Seen, Watch
from teho.model.bench import Measured, Participant
from teho.model.missing import Missing, Reason
from teho.show.build.bench import bench_document
from teho.show.build.bench_tables import tables_of
from teho.show.html.page import render_html
from teho.show.text.document import render_text

OTHER = msgspec.structs.replace(GPU, id="GPU-1", index=1)


class Read:
    """A source that returns these values one after the other; another GPU is always busy."""

    devices = (GPU, OTHER)
    notes = ()

    def __init__(self, *values) -> None:
        self.values = iter(values)

    def read(self, pids, *, ends=False):
        return {
            GPU.id: {"gpu_busy_percent": next(self.values)},
            OTHER.id: {"gpu_busy_percent": 100.0, "gpu_thermal_throttle_percent": 100.0},
        }


@pytest.mark.parametrize(
    ("values", "busy"),
    [
        ((0.0, 20.0, 40.0, 60.0), 30.0),
        ((0.0, 0.0, 0.0, 0.0), 0.0),
        ((50.0, 50.0, 50.0), None),  # shorter than the driver's own mean may be
        ((Missing(Reason.UNSUPPORTED),) * 5, None),
    ],
)
def test_use_is_the_mean_of_the_placements_own_gpu(values, busy) -> None:
    watch = Watch([Read(*values)])
    for _ in values:
        watch.sample((GPU,))
    assert watch.seen() == Seen(None, None, busy)
    assert watch.seen() == Seen()  # the next phase begins with nothing


def test_a_phase_has_a_peak_of_its_own() -> None:
    """The second point needs a thousandth of the first one's memory."""
    with serve("add", "numpy") as program:
        large, small = (
            program.phases({"elements": elements})["kernel"]["memory_bytes"]
            for elements in (20_000_000, 20_000)
        )
    array_bytes = 4 * 20_000_000
    # Two arrays, beside what Python and NumPy need, which is some 40 MiB.
    assert 2 * array_bytes < large < 3 * array_bytes
    assert 10 * 2**20 < small < array_bytes


SIDES = (("cpu:2", "torch"), ("gpu:1", "torch"), ("gpu:1", "jax"))


def measured() -> Measured:
    """Return an example with images on a CPU and a GPU; JAX's use and memory are not known."""
    timings = []
    for placement, library in SIDES:
        on_gpu = placement == "gpu:1"
        for phase in ("loader", "host memory", *(("on the device",) if on_gpu else ())):
            images = 50_000 if on_gpu else 8192
            point = {"batch": 64, "images": images, "workers": 4, "prefetch": 2}
            is_known = library == "torch"
            samples = Samples(
                point, library, placement, phase, 2.0, (2.0,) * 6, 1, items=float(images),
                memory_bytes=3 * 2**30 if is_known else None,
            )  # fmt: skip
            seen = Seen(0.0, 0.0, 41.7) if on_gpu and is_known else Seen()
            timings.append(timing_of(samples, None, seen))
    (scene,) = made_up().results
    return msgspec.structs.replace(
        scene, axis="batch", figure="items", phases=("loader", "host memory", "on the device"),
        groups={"4 workers with prefetch 2": [timings[0].point]}, timings=tuple(timings),
        participants=tuple(Participant(library=name, placement=place) for place, name in SIDES),
        crossovers=(), amortisations=(), left=(), title="Images",
    )  # fmt: skip


def test_memory_and_use_are_shown_with_the_rates() -> None:
    rates, memory, use = tables_of(measured())
    assert rates.title == "Images: images/s, more is better"
    assert [row["phase"] for row in rates.rows] == ["loader", "host memory", "on the device"]
    assert rates.rows[2]["gpu:1 torch"] == "25,000"
    assert rates.note == (
        "An epoch has 8,192 images on 2 cores, and 50,000 images on 1 GPU; to use all of "
        "CIFAR-10: `--images 50000`"
    )
    assert memory.title == "Most memory"
    assert [(row["cpu:2 torch"], row["gpu:1 torch"]) for row in memory.rows] == [
        ("3.00 GiB", "3.00 GiB"), ("3.00 GiB", "3.00 GiB"), (None, "3.00 GiB"),
    ]  # fmt: skip
    assert use.title.startswith("GPU use")
    assert [row["gpu:1 torch"] for row in use.rows] == ["42 %"] * 3
    for table in (memory, use):  # what JAX lacks is not a column of nothing
        assert "gpu:1 jax" not in {column.key for column in table.columns}
    assert "cpu:2 torch" not in {column.key for column in use.columns}


def test_only_the_loader_is_shown_with_its_settings() -> None:
    rows = tables_of(measured())[0].rows
    settings = [(row["phase"], row["workers"], row["prefetch"]) for row in rows]
    assert settings == [
        ("loader", "4", "2"), ("host memory", None, None), ("on the device", None, None),
    ]  # fmt: skip


def test_without_a_gpu_the_third_feed_is_reported_as_impossible() -> None:
    scene = measured()
    assert not any("data in GPU memory" in note for note in notes_of(scene))
    own = tuple(one for one in scene.timings if one.placement == "cpu:2")
    found = notes_of(msgspec.structs.replace(scene, timings=own))
    assert any("there are no rows for data in GPU memory" in note for note in found)


def test_all_faces_show_memory_and_use_within_their_width() -> None:
    bench = msgspec.structs.replace(made_up(), results=(measured(),))
    document = bench_document(bench)
    text = render_text(document, width=80, color=False)
    assert max(map(len, text.splitlines())) <= 80
    page = render_html(document, [])
    for title in ("Most memory", "GPU use: share of time with a kernel running"):
        assert title in text
        assert title in page
