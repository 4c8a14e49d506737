"""GPUs are judged while a program works with them: imports and compiling are no idle GPU."""

from __future__ import annotations

import msgspec
import pytest

from explain.program_parts import NODE, loader, of_library, own, process, seen
from explain.scenario_parts import NodePart, found, gpu, judged, repeated, scenario
from teho.explain.program import program_of
from teho.explain.rules.gpu import (
    cpu_busy_gpu_idle,
    gpu_decides_speed,
    gpu_low_occupancy,
    gpu_low_use,
    waits_for_device,
)
from teho.model.stack import Frame, State

IMPORTS = Frame("<frozen importlib._bootstrap>", "_find_and_load", 1, "")
TORCH = {"cuda": "12.8", "devices": ["cuda:0"]}


def importing(wall_s):
    return seen((IMPORTS,), wall_s)


def waiting(wall_s):
    return seen((own("loss.item()", 32),), wall_s, State.WAITING)


def made(*stacks, busy, progress=(), torch=None, cores=16, used=1.0, loaders=(), **signals):
    """Make a run of 100 s, in 60 time bins, of one process on a node with one GPU."""
    part = NodePart(
        NODE, started_s=100.0, cores=cores, cores_used=used, gpus=[gpu(busy, **signals)],
        rates={"job_cpu_s": used},
    )  # fmt: skip
    one = process(*stacks, progress=progress, torch=torch, loaders=loaders)
    run, summary = scenario(part, elapsed_s=100.0)
    return run, msgspec.structs.replace(summary, program=program_of([one]))


def after_imports(share):
    """Return a GPU that has no work for 50 s, and then is busy for a share of the time, in %."""
    return repeated((0.0, 30), (share, 30))


class TestWaiting:
    def test_a_gpu_that_always_works_after_the_imports_makes_no_loss(self):
        run = made(importing(50.0), waiting(40.0), busy=after_imports(97.0))
        assert judged(waits_for_device, run) == []

    def test_a_gpu_that_works_in_turns_does(self):
        finding = found(
            waits_for_device, made(importing(50.0), waiting(30.0), busy=after_imports(60.0))
        )
        assert (
            "most of it at train.py:32 (`loss.item()`), but the GPU was idle 40 % of the time "
            in (finding.sentence)
        )
        assert finding.sentence.endswith("after the start.")
        assert finding.regain_percent is not None
        assert finding.regain_percent[1] <= 21.0

    def test_work_before_the_end_of_the_imports_does_not_count(self):
        busy = repeated((60.0, 1), (0.0, 29), (97.0, 30))
        assert judged(waits_for_device, made(importing(50.0), waiting(40.0), busy=busy)) == []

    def test_a_gpu_with_little_work_is_judged_for_the_whole_run(self):
        finding = found(waits_for_device, made(waiting(40.0), busy=20.0))
        assert finding.sentence.endswith("the GPU was idle 80 % of the time.")


class TestLowUse:
    def test_the_imports_of_a_short_run_do_not_count(self):
        assert judged(gpu_low_use, made(importing(50.0), busy=after_imports(95.0))) == []

    def test_what_is_low_after_the_imports_is_reported_with_this_figure(self):
        busy = repeated((0.0, 30), (60.0, 5), (20.0, 20), (60.0, 5))
        finding = found(gpu_low_use, made(importing(50.0), busy=busy))
        assert "busy only 31 % of the time after the start." in finding.sentence

    def test_a_long_start_is_a_loss(self):
        part = NodePart(NODE, started_s=100.0, gpus=[gpu(after_imports(95.0))])
        one = process(importing(500.0), wall_s=1000.0, progress=())
        run, summary = scenario(part, elapsed_s=1000.0)
        run = run, msgspec.structs.replace(summary, program=program_of([one]))
        assert "busy only 48 % of the time." in found(gpu_low_use, run).sentence


class TestOneCore:
    LOOP = own("for image in images:", 56)

    def test_the_lines_are_named_and_no_workers_advised(self):
        run = made(importing(20.0), seen((self.LOOP,), 70.0), busy=5.0)
        finding = found(cpu_busy_gpu_idle, run)
        assert finding.sentence.endswith(
            "on only one of 16 cores, most of it at train.py:56 (`for image in images:`)."
        )
        assert finding.action.startswith("Look at train.py:56 first.")
        assert "workers=" not in finding.action

    def test_a_program_that_waits_for_its_loader_gets_workers(self):
        fetch = of_library("torch/utils/data/_utils/fetch.py", "_MapDatasetFetcher.fetch", "f()")
        run = made(seen((fetch, self.LOOP), 80.0), busy=5.0, loaders=[loader()])
        assert "num_workers=15" in found(cpu_busy_gpu_idle, run).action

    def test_imports_do_not_count(self):
        busy = repeated((0.0, 36), (90.0, 24))
        assert judged(cpu_busy_gpu_idle, made(importing(60.0), busy=busy)) == []


class TestDecides:
    def test_a_busy_gpu_decides_the_speed(self):
        finding = found(
            gpu_decides_speed, made(importing(50.0), busy=after_imports(97.0), torch=TORCH)
        )
        assert "busy 97 % of the time after the start" in finding.sentence
        assert "`teho profile --window 2s --with stack -- " in finding.action
        assert finding.regain_percent is None

    @pytest.mark.parametrize(
        "run",
        [
            made(importing(50.0), busy=after_imports(85.0), torch=TORCH),
            made(importing(50.0), busy=after_imports(97.0)),  # another library
            made(importing(50.0), busy=0.0, torch=TORCH),
        ],
    )
    def test_others_do_not(self, run):
        assert judged(gpu_decides_speed, run) == []


SIGNALS = {"gpu_sm_active_percent": 95.0, "gpu_sm_occupancy_percent": 20.0}


class TestOccupancy:
    def test_only_kernels_of_the_program_can_be_changed(self):
        own_kernel = seen(
            (of_library("numba/cuda/dispatcher.py", "launch"), own("k[1, 2](x)")), 50.0
        )
        assert judged(gpu_low_occupancy, made(busy=95.0, torch=TORCH, **SIGNALS)) == []
        assert len(judged(gpu_low_occupancy, made(own_kernel, busy=95.0, **SIGNALS))) == 1

    def test_compiled_code_is_not_the_users(self):
        frames = (
            of_library("triton/runtime/jit.py", "JITFunction.run"),
            of_library("torch/_inductor/runtime/triton_heuristics.py", "CachingAutotuner.run"),
            own("model(x)"),
        )
        run = made(seen(frames, 50.0), busy=95.0, torch=TORCH, **SIGNALS)
        assert judged(gpu_low_occupancy, run) == []
