"""Examples measured through their real programs; CuPy is a stand-in made of NumPy."""

from __future__ import annotations

import functools
import importlib
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from standins import GPU, on_cpu, on_gpu, with_cupy

from support import FRAMEWORKS, lacks_framework
from teho.bench.example import OutputCheck, shown_group
from teho.bench.examples import BANDWIDTH, EXAMPLES, LIBRARIES, MATMUL, SOLVE
from teho.bench.measure import Effort, measure
from teho.bench.worker import PROGRAMS, Worker
from teho.model.bench import Measured, Point
from teho.model.missing import Missing, Reason

EFFORT = Effort(is_quick=True, seconds=0.001, most_s=0.01, samples=2)
FOR_S = 120.0
PYTHON = str(FRAMEWORKS / "bin" / "python")


def small(example, *points, checks=None):
    checks = example.checks if checks is None else checks
    return example._replace(quick=points, checks=checks)


def measured(example, libraries, placements, environment=None, python=sys.executable, **more):
    environment = {**os.environ, **(environment or {})}
    return measure(example, libraries, placements, python, environment, EFFORT, FOR_S, **more)


POINTS = {
    "add": ({"elements": 1}, {"elements": 1000}),
    "loop": ({"elements": 1}, {"elements": 100}),
    "sum": ({"elements": 1}, {"elements": 1000}),
    "solve": ({"systems": 2, "rows": 3}, {"systems": 20, "rows": 3}),
    "matmul": tuple({"size": 16, "precision": name} for name in ("FP64", "FP32", "TF32", "BF16")),
    "bandwidth": ({"bytes": 65536},),
}


LIBRARIES_HERE = [
    pytest.param(name, marks=pytest.mark.skipif(
        bool(lacks_framework(name)), reason=lacks_framework(name) or "-"))
    for name in ("jax", "torch")
]  # fmt: skip


@functools.cache
def of_all_libraries(name: str) -> Measured:
    """Measure an example with NumPy and all frameworks, and one also on a GPU that is not there."""
    libraries = [library for library in ("jax", "torch") if not lacks_framework(library)]
    example = EXAMPLES[name]._replace(cpu=("numpy", *libraries))
    places = [on_cpu(), on_gpu()] if name == "solve" else [on_cpu()]
    return measured(small(example, *POINTS[name]), ["numpy", *libraries], places, python=PYTHON)


# A point's libraries run together; another test needs those of "solve".
@pytest.mark.drawn(1, by="name", always=("solve",))
@pytest.mark.parametrize("name", POINTS)
@pytest.mark.parametrize("library", LIBRARIES_HERE)
def test_libraries_agree_with_numpy(name: str, library: str) -> None:
    found = of_all_libraries(name)
    own = [one for one in found.agreements if one.library == library]
    assert own
    assert all(one.agrees for one in own), own
    assert {one.library for one in found.timings} >= {"numpy", library}


@pytest.mark.parametrize("name", POINTS)
def test_the_form_for_cupy_agrees_with_numpy(name: str, tmp_path: Path) -> None:
    found = measured(
        small(EXAMPLES[name], *POINTS[name]),
        ["numpy", "cupy"],
        [on_cpu(), on_gpu()],
        with_cupy(tmp_path),
    )
    own = [one for one in found.agreements if one.library == "cupy"]
    assert own
    assert all(one.agrees for one in own), own
    phases = {one.phase for one in found.timings if one.library == "cupy"}
    assert (
        phases
        >= {
            "add": {"kernel", "copy in", "copy out", "end to end"},
            "loop": {"step by step", "running sum"},
            "sum": {"kernel", "copy in", "end to end"},
            "solve": {"kernel", "copy in", "copy out", "end to end, data generated on the device"},
            "matmul": {"kernel", "copy in", "copy out", "end to end"},
            "bandwidth": {"host to device, pinned", "device to host, pinned"},
        }[name]
    )
    if name == "solve":
        pairs = {(one.slow, one.fast, one.phase) for one in found.crossovers}
        assert pairs == {("cpu:1", "gpu:1", "kernel"), ("cpu:1", "gpu:1", "end to end")}
    if name == "matmul":
        pairs = {(one.slow, one.phase, one.slow_phase) for one in found.crossovers}
        assert pairs == {("cpu:1", "kernel", ""), ("cpu:1", "end to end", "kernel")}


def test_peaks_are_the_devices_and_unknown_of_cpus(tmp_path: Path) -> None:
    found = measured(
        small(MATMUL, {"size": 16, "precision": "FP64"}),
        ["numpy", "cupy"],
        [on_cpu(), on_gpu()],
        with_cupy(tmp_path),
    )
    peaks = {
        one.placement: one.flop_per_s / one.peak_percent * 100 / 1e12 if one.peak_percent else None
        for one in found.timings
        if one.phase == "kernel"
    }
    # NVIDIA's data sheet of the H100 SXM: 67 TFLOP/s of FP64 tensor cores.
    assert peaks == {"cpu:1": None, "gpu:1": pytest.approx(67, rel=0.01)}


def test_without_a_gpu_the_cpu_half_runs_and_says_what_is_missing() -> None:
    found = measured(
        small(SOLVE, *POINTS["solve"]),
        ["numpy"],
        [on_cpu()],
        notes=["gpu:1 was left out: this job has no GPU."],
    )
    assert {one.placement for one in found.timings} == {"cpu:1"}
    assert found.notes[0] == "gpu:1 was left out: this job has no GPU."


@pytest.mark.parametrize("library", LIBRARIES_HERE)
def test_a_build_only_for_cpus_is_named(library: str) -> None:
    found = of_all_libraries("solve")
    (own,) = [
        one for one in found.participants if (one.library, one.placement) == (library, "gpu:1")
    ]
    assert own.why == "cpu_only_build"
    assert "is a build for CPUs only" in own.text
    assert any(f"{LIBRARIES[library]} on 1 GPU is not compared" in note for note in found.notes)
    assert {one.placement for one in found.timings} == {"cpu:1"}


def beside_numpy(environment=None):
    """Solve systems with NumPy and CuPy; return the measurement and what is said of CuPy."""
    places = [on_cpu(), on_gpu()]
    found = measured(small(SOLVE, *POINTS["solve"]), ["numpy", "cupy"], places, environment)
    (own,) = [one for one in found.participants if one.library == "cupy"]
    return found, own


def test_a_library_that_is_not_installed_takes_no_part() -> None:
    _, own = beside_numpy()
    assert (own.why, own.text) == ("not_installed", "CuPy is not installed")


def test_a_library_that_does_not_load_is_broken(tmp_path: Path) -> None:
    (tmp_path / "cupy.py").write_text("import nowhere_at_all")
    _, own = beside_numpy({"PYTHONPATH": str(tmp_path)})
    assert own.why == "broken"
    assert "nowhere_at_all" in own.text


def test_when_memory_ends_the_sweep_ends_and_says_so() -> None:
    """NumPy asks for 35 GiB, and is allowed two."""
    points = (
        {"systems": 1, "rows": 4},
        {"systems": 300_000_000, "rows": 4},
        {"systems": 10**12, "rows": 4},
    )
    example, patient = small(SOLVE, *points), EFFORT._replace(most_s=60.0)
    found = measure(
        example, ["numpy"], [on_cpu()], sys.executable, os.environ, patient, FOR_S,
        memory_bytes=2 * 1024**3,
    )  # fmt: skip
    (left,) = found.left
    assert (left.why, left.point) == ("memory", points[1])
    assert any("memory is full at 300,000,000 systems of 4 × 4" in note for note in found.notes)
    assert {one.point["systems"] for one in found.timings} == {1}


def test_a_missing_feature_of_a_library_is_reported_once() -> None:
    found = measured(small(MATMUL, *POINTS["matmul"]), ["numpy"], [on_cpu()])
    assert {one.why for one in found.left} == {"unsupported"}
    assert (
        "BF16 on the CPU was not measured with NumPy: the library does not offer this precision."
        in found.notes
    )


@pytest.mark.parametrize(
    ("hip", "capability", "has_it"),
    [(None, (7, 0), False), (None, (8, 0), True), ("6", (9, 4), True)],
)
def test_a_gpu_without_tf32_is_not_reported_with_it(
    monkeypatch: pytest.MonkeyPatch, hip: str | None, capability: tuple[int, int], has_it: bool
) -> None:
    """A PyTorch that is only what is asked of it: its GPU is a V100, an A100 or one of AMD's."""
    monkeypatch.syspath_prepend(PROGRAMS)
    libraries, matmul = map(importlib.import_module, ("libraries", "matmul"))
    cuda = SimpleNamespace(
        get_device_name=lambda _: "GPU", get_device_capability=lambda _: capability
    )
    torch = SimpleNamespace(
        __name__="torch", __version__="2", device=str, cuda=cuda, matmul=min,
        version=SimpleNamespace(hip=hip), set_float32_matmul_precision=lambda _: None,
    )  # fmt: skip
    program = matmul.Matmul(libraries._Torch(torch, "gpu"))
    if has_it:
        assert program.multiplication({"precision": "TF32"}) is min
    else:
        with pytest.raises(matmul.Unsupported, match="FP32 instead"):
            program.multiplication({"precision": "TF32"})
    assert program.multiplication({"precision": "FP32"}) is min


def test_if_ten_runs_take_too_long_a_cpu_sweep_ends_and_a_gpu_sweep_continues(
    tmp_path: Path,
) -> None:
    points = [{"systems": 2000, "rows": 32}, {"systems": 2001, "rows": 32}]  # longer than EFFORT's
    found = measured(
        small(SOLVE, *points, checks=()),
        ["numpy", "cupy"],
        [on_cpu(), on_gpu()],
        with_cupy(tmp_path),
    )
    (left,) = found.left
    assert (left.placement, left.why, left.point) == ("cpu:1", "slow", points[1])
    timed = {(one.placement, one.point["systems"]) for one in found.timings}
    assert timed == {("cpu:1", 2000), ("gpu:1", 2000), ("gpu:1", 2001)}
    assert "1 series of sizes was ended because ten runs on a CPU take too long." in found.notes


def test_a_sweep_whose_runs_do_not_grow_continues() -> None:
    points = [{"systems": 2000, "rows": 32}, {"systems": 2001, "rows": 32}]
    found = measured(small(SOLVE, *points, checks=())._replace(grows=False), ["numpy"], [on_cpu()])
    assert found.left == ()


def test_generated_images_are_named_and_the_data_set_is_not() -> None:
    example = EXAMPLES["cnn"]._replace(checks=())
    for variables, is_said in (({"CIFAR10_PATH": ""}, True), ({"CIFAR10_PATH": "/data"}, False)):
        found = measured(example, [], [on_cpu()], variables)
        assert any("noise in CIFAR-10's format" in note for note in found.notes) == is_said


WRONG = """
import numpy
from numpy import *
__version__ = "wrong"
def asarray(array): return numpy.array(array)
def asnumpy(array): return array
class linalg:
    @staticmethod
    def solve(a, b): return numpy.linalg.solve(a, b) * (1 + 1e-6)
class cuda:
    class runtime:
        @staticmethod
        def getDeviceProperties(number): return {"name": b"Wrong GPU"}
    @staticmethod
    def get_current_stream():
        class stream:
            synchronize = staticmethod(lambda: None)
        return stream
def get_default_memory_pool():
    class pool:
        free_all_blocks = staticmethod(lambda: None)
        total_bytes = staticmethod(lambda: 0)
    return pool
"""


def test_who_computes_something_else_is_not_timed(tmp_path: Path) -> None:
    (tmp_path / "cupy.py").write_text(WRONG)
    found, own = beside_numpy({"PYTHONPATH": str(tmp_path)})
    assert own.why == "disagrees"
    assert not all(one.agrees for one in found.agreements)
    assert {one.library for one in found.timings} == {"numpy"}


def test_a_library_that_talks_and_one_that_dies(tmp_path: Path) -> None:
    (tmp_path / "cupy.py").write_text(
        WRONG.replace("* (1 + 1e-6)", "").replace(
            "def solve(a, b):",
            "def solve(a, b):\n        print('chatter')\n"
            "        if len(a) == 20: import os; os.kill(os.getpid(), 9)\n"
            "        return numpy.linalg.solve(a, b)\n    def unused(a, b):",
        )
    )
    found, own = beside_numpy({"PYTHONPATH": str(tmp_path)})
    assert own.why == "died"
    assert "SIGKILL" in own.text
    timed = {(one.library, one.point["systems"]) for one in found.timings}
    assert timed == {("numpy", 2), ("numpy", 20), ("cupy", 2)}


def test_one_that_does_not_answer_is_given_up() -> None:
    worker = Worker("solve", "numpy", on_cpu(), sys.executable, os.environ, None)
    try:
        (ready,) = worker.ask(None, 60)
        assert ready["at"] == "ready"
        command = {"do": "check", "point": {"systems": 1, "rows": 4000}}
        (answer,) = worker.ask(command, 0.001)
        assert (answer["at"], answer["why"]) == ("gone", "time")
    finally:
        worker.end()
        worker.end()


def test_when_the_time_is_over_the_rest_is_reported_as_left_out() -> None:
    example = small(SOLVE, *POINTS["solve"], checks=())
    found = measure(example, ["numpy"], [on_cpu()], sys.executable, os.environ, EFFORT, 0.0)
    assert found.timings == ()
    assert found.verdict.startswith("No library could be timed")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Point]]:
    """Have programs that take 30 s a point on the CPU and 3 s on the GPU, by a clock of their own.

    Return what they are asked for: placement and point.
    """
    clock, points = SimpleNamespace(now=0.0), []

    class Slow:
        def __init__(self, program, library, placement, *_) -> None:
            self.library, self.placement = library, placement
            self.name = f"{library} on {placement.name}"

        def ask(self, command, limit_s, poll=None):
            if command is None:
                yield {"at": "ready", "version": "1", "python": "3", "device": "", "threads": 1}
                return
            points.append((self.placement.name, command["point"]))
            clock.now += 3.0 if self.placement.gpus else 30.0
            yield {
                "at": "times", "phase": "host memory", "first_s": 1.0, "samples_s": [1.0] * 10,
                "calls": 1, "flop": None, "bytes": None, "items": 1.0, "memory_bytes": None,
            }  # fmt: skip
            yield {"at": "done"}

        def end(self) -> None:
            pass

    monkeypatch.setattr("teho.bench.measure.Worker", Slow)
    monkeypatch.setattr("teho.bench.measure.time", SimpleNamespace(
        monotonic=lambda: clock.now, clock=clock
    ))  # fmt: skip
    return points


def test_a_slow_program_leaves_the_others_their_time(asked: list[tuple[str, Point]]) -> None:
    sweep = [{"batch": batch, "images": 8, "workers": 0, "prefetch": 2} for batch in range(1, 11)]
    example = small(EXAMPLES["resnet152"], *sweep, checks=())
    found = measure(example, ["torch"], [on_cpu(), on_gpu()], "", {}, EFFORT, 100.0)
    assert [place for place, _ in asked].count("gpu:1") == len(sweep)
    assert [place for place, _ in asked].count("cpu:1") == 2  # the second ends after its half
    assert [(one.placement, one.why) for one in found.left] == [("cpu:1", "time")]


def test_a_program_that_does_not_answer_leaves_the_others_half_of_the_time(
    asked: list[tuple[str, Point]], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("teho.bench.measure")

    class Hangs(module.Worker):
        def ask(self, command, limit_s, poll=None):
            if command is None or self.placement.gpus:
                yield from super().ask(command, limit_s, poll)
                return
            module.time.clock.now += limit_s
            yield {"at": "gone", "why": "time", "text": "no answer"}

    monkeypatch.setattr(module, "Worker", Hangs)
    sweep = [{"batch": batch, "images": 8, "workers": 0, "prefetch": 2} for batch in range(1, 11)]
    example = small(EXAMPLES["resnet152"], *sweep, checks=())
    found = measure(example, ["torch"], [on_cpu(), on_gpu()], "", {}, EFFORT, 100.0)
    assert [place for place, _ in asked] == ["gpu:1"] * len(sweep)  # 30 s in all
    assert [(one.placement, one.why) for one in found.left] == [("cpu:1", "time")]
    assert found.elapsed_s == pytest.approx(50 + 3 * len(sweep))


def test_only_a_feed_with_settings_is_shown_with_them(asked: list[tuple[str, Point]]) -> None:
    example = EXAMPLES["cnn"]._replace(checks=())
    found = measure(example, ["torch"], [on_cpu(), on_gpu()], "", {}, EFFORT, 1000.0)
    assert [place for place, _ in asked].count("gpu:1") == len(example.quick)
    # Only of the sweep over batches, without settings.
    assert [(one.phase, one.group, one.last) for one in found.crossovers] == [
        ("host memory", "", 256)
    ]
    assert found.verdict.startswith(
        "Highest rates: host memory 1 images/s at batch 16. Host memory: 1 G"
    )
    point = {"batch": 16, "images": 48}
    assert shown_group("workers: 4", "loader", point) == "workers: 4"
    assert shown_group("8 × 8", "kernel", {"systems": 1}) == "8 × 8"


def test_the_largest_problems_come_last(asked: list[tuple[str, Point]]) -> None:
    points = [{"systems": 1, "rows": 8}, {"systems": 10, "rows": 8}, {"systems": 1, "rows": 512}]
    measure(small(SOLVE, *points, checks=()), ["torch"], [on_gpu()], "", {}, EFFORT, 100.0)
    assert [point for _, point in asked] == points


class Throttled:
    devices = (GPU,)
    notes = ()

    def __init__(self, reading) -> None:
        self.reading = reading

    def read(self, pids, *, ends=False):
        return {GPU.id: {"gpu_thermal_throttle_percent": self.reading}}


@pytest.mark.parametrize(
    ("reading", "seen", "said"),
    [
        (100.0, 100.0, "The GPU was slowed by heat in"),
        (0.0, 0.0, ""),
        (Missing(Reason.UNSUPPORTED), None, "not known if the GPU was slowed"),
    ],
)
def test_throttling_is_seen_and_unknown_is_not_zero(reading, seen, said, tmp_path: Path) -> None:
    found = measured(
        small(SOLVE, POINTS["solve"][0]),
        ["numpy", "cupy"],
        [on_cpu(), on_gpu()],
        with_cupy(tmp_path),
        sources=[Throttled(reading)],
    )
    on_gpus = {one.thermal_throttle_percent for one in found.timings if one.library == "cupy"}
    on_cpus = {one.thermal_throttle_percent for one in found.timings if one.library == "numpy"}
    assert (on_gpus, on_cpus) == ({seen}, {None})
    assert any(said in note for note in found.notes) if said else "heat" not in str(found.notes)


def test_a_reference_may_be_in_another_precision() -> None:
    point = {"size": 64, "precision": "FP32"}
    sharp = OutputCheck(point, 1e-12, {"size": 64, "precision": "FP64"})
    found = measured(small(MATMUL, point, checks=(sharp,)), ["numpy"], [on_cpu()])
    (own,) = found.agreements
    assert not own.agrees
    assert 1e-9 < own.error < 1e-5


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no tmpfs at /dev/shm")
def test_memory_is_not_called_a_disk() -> None:
    """Linux has a tmpfs there; /proc and the like aside, what is not one is a disk."""
    found = measured(
        small(BANDWIDTH, {"bytes": 65536}), ["numpy"], [on_cpu()], {"TMPDIR": "/dev/shm"}
    )
    phases = {one.phase for one in found.timings}
    assert phases == {"memory to memory", "cached file to memory"}


def test_a_cpu_that_trains_on_fewer_images_is_compared_by_its_rate(
    asked: list[tuple[str, Point]],
) -> None:
    """Every epoch takes one second here: 8,192 images on the CPU, and 50,000 on the GPU."""
    example = EXAMPLES["cnn"]._replace(checks=())
    effort = Effort(is_quick=False, seconds=0.001, most_s=0.01, samples=2)
    found = measure(example, ["torch"], [on_cpu(), on_gpu()], "", {}, effort, 1e5)
    images = {(place, point["images"]) for place, point in asked}
    assert images == {("cpu:1", 8192), ("gpu:1", 50_000)}
    (host,) = [one for one in found.crossovers if one.phase == "host memory"]
    assert host.last == 1024  # the CPU's largest batch
    assert host.times == pytest.approx(50_000 / 8192)
    assert host.outcome == "always"
    batches = [point["batch"] for point in found.groups["4 workers with prefetch 2"]]
    assert batches == [64, 128, 256, 512, 1024, 2048, 4096]
