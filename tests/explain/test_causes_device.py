"""Causes at the device: copies, waiting for it, and work that is too small for it."""

from __future__ import annotations

import msgspec
import pytest

from explain.program_parts import (
    NODE,
    loader,
    of_library,
    own,
    process,
    seen,
    watched,
)
from explain.scenario_parts import (
    UNSUPPORTED,
    NodePart,
    figures,
    found,
    gpu,
    judged,
    repeated,
    scenario,
    untouched_gpu,
)
from teho.explain.program import program_of
from teho.explain.rules.gpu import (
    copies_from_pageable_memory,
    framework_without_gpu,
    gpu_low_use,
    host_bound,
    problem_too_small,
    waits_for_device,
)
from teho.model.finding import Abstention, Severity
from teho.model.stack import State
from teho.model.watched import Progress

MIB = 1024**2


def copying(wall_s):
    return seen((own("x.to(device)", 31),), wall_s)


def waiting(wall_s):
    return seen((own("loss.item()", 32),), wall_s, State.WAITING)


def using(watched_process, **libraries):
    """Return the process with what is known of its libraries."""
    return msgspec.structs.replace(watched_process, libraries=libraries)


def on_gpus(*processes, busy=40.0, gpus=1):
    """Make a run of these processes beside GPUs that are busy for so much of the time."""
    return watched(*processes, parts=[NodePart(NODE, gpus=[gpu(busy)] * gpus)])


class TestCopies:
    @staticmethod
    def made(copies_s, busy=40.0, **settings):
        return on_gpus(process(copying(copies_s), loaders=[loader(**settings)]), busy=busy)

    @pytest.mark.parametrize(("copies_s", "count"), [(9.9, 0), (10.0, 1)])
    def test_threshold(self, copies_s, count):
        verdict = judged(copies_from_pageable_memory, self.made(copies_s))
        assert len(verdict) == count
        if verdict:
            pinned = "`DataLoader(…, num_workers=1, pin_memory=True)` in train.py:8"
            assert pinned in verdict[0].action
            assert verdict[0].regain_percent == (5.0, 10.0)

    def test_with_workers_pinning_is_enough(self):
        action = found(copies_from_pageable_memory, self.made(60.0, num_workers=2)).action
        assert "`DataLoader(…, pin_memory=True)` in train.py:8" in action

    @pytest.mark.parametrize(("busy", "count"), [(90.0, 1), (90.1, 0), (100.0, 0)])
    def test_a_copy_that_waits_for_work_on_the_gpu_is_no_loss(self, busy, count):
        verdict = judged(copies_from_pageable_memory, self.made(60.0, busy))
        assert len(verdict) == count
        if verdict:
            assert verdict[0].regain_percent == (5.0, 10.0)
            assert figures(verdict[0])["time spent on copies to the GPU"] == 60.0

    def test_abstains_if_the_gpu_was_not_seen(self):
        verdict = judged(copies_from_pageable_memory, self.made(60.0, UNSUPPORTED))
        assert isinstance(verdict, Abstention)
        assert judged(copies_from_pageable_memory, self.made(5.0, UNSUPPORTED)) == []

    @pytest.mark.parametrize("settings", [{"pin_memory": True}, {"pin_memory": None}])
    def test_pinned(self, settings):
        count = 0 if settings["pin_memory"] else 1
        assert len(judged(copies_from_pageable_memory, self.made(60.0, **settings))) == count

    def test_not_without_a_loader_or_a_gpu(self):
        assert judged(copies_from_pageable_memory, on_gpus(process(copying(60.0)))) == []
        made = watched(process(copying(60.0), loaders=[loader()]))
        assert judged(copies_from_pageable_memory, made) == []
        other = loader()
        other.settings.clear()  # another library's, which says nothing of it
        made = on_gpus(process(copying(60.0), loaders=[other]))
        assert judged(copies_from_pageable_memory, made) == []


class TestWaitsForDevice:
    @pytest.mark.parametrize(("waits_s", "count"), [(9.9, 0), (10.0, 1)])
    def test_threshold_of_the_wait(self, waits_s, count):
        assert len(judged(waits_for_device, on_gpus(process(waiting(waits_s))))) == count

    @pytest.mark.parametrize(("busy", "count"), [(79.9, 1), (80.0, 0)])
    def test_threshold_of_the_gpu(self, busy, count):
        verdict = judged(waits_for_device, on_gpus(process(waiting(60.0)), busy=busy))
        assert len(verdict) == count
        if verdict:
            assert verdict[0].regain_percent == pytest.approx((0.0, 20.1))

    def test_the_busiest_of_several_counts(self):
        parts = [NodePart(NODE, gpus=[gpu(5.0), gpu(95.0)]), NodePart("r01g02", gpus=[gpu(5.0)])]
        assert judged(waits_for_device, watched(process(waiting(60.0)), parts=parts)) == []

    def test_abstains_if_it_was_not_seen(self):
        made = on_gpus(process(waiting(60.0)), busy=UNSUPPORTED)
        assert isinstance(judged(waits_for_device, made), Abstention)
        assert judged(waits_for_device, on_gpus(process(waiting(5.0)), busy=UNSUPPORTED)) == []

    def test_without_a_gpu_there_is_nothing_to_wait_for(self):
        assert judged(waits_for_device, watched(process(waiting(60.0)))) == []


class TestDuringTheSteps:
    """A program that starts for 60 s, and makes steps for 40 s."""

    @staticmethod
    def made(busy_s, *, first_s=160.0, last_s=200.0, started_s=100.0, waits_s=30.0):
        # 60 time bins: 3 for 5 s.
        busy = repeated((0.0, 36), (100.0, 3 * busy_s // 5), (0.0, 24 - 3 * busy_s // 5))
        progress = [Progress(steps=401, first_s=first_s, last_s=last_s)]
        made = scenario(NodePart(NODE, started_s=started_s, gpus=[gpu(busy)]), elapsed_s=100.0)
        main = process(waiting(waits_s), progress=progress)
        return made[0], msgspec.structs.replace(made[1], program=program_of([main]))

    @pytest.mark.parametrize(("busy_s", "count"), [(40, 0), (35, 0), (20, 1)])
    def test_a_gpu_that_works_while_there_are_steps_is_no_loss(self, busy_s, count):
        verdict = judged(waits_for_device, self.made(busy_s))
        assert len(verdict) == count
        if verdict:
            assert "the GPU was idle 50 % of the time during the steps." in verdict[0].sentence
            assert figures(verdict[0])["GPU busy during the steps"] == pytest.approx(50.0)
            # Idle for half of 40 s, of a process of 100 s.
            assert verdict[0].regain_percent == pytest.approx((0.0, 20.0))

    @pytest.mark.parametrize("few", [{"first_s": 198.5}, {"first_s": 900.0, "last_s": 950.0}])
    def test_with_few_steps_the_time_from_the_first_work_to_the_last_counts(self, few):
        assert judged(waits_for_device, self.made(40, **few)) == []

    def test_the_whole_run_counts_if_the_clock_of_the_node_is_unknown(self):
        verdict = found(waits_for_device, self.made(40, started_s=None))
        assert verdict.sentence.endswith("but the GPU was idle 60 % of the time.")
        assert figures(verdict)["GPU busy, mean"] == 40.0

    def test_a_low_use_of_the_whole_run_is_then_the_start(self):
        action = found(gpu_low_use, self.made(40)).action
        assert "The GPU is busy while the program makes steps, but not at the start" in action
        assert "num_workers" not in action


class TestHostBound:
    IN_TORCH = of_library("torch/nn/functional.py", "relu"), own("relu(x)", 41)
    IN_FORWARD = own("x * 1.01", 42), of_library("torch/nn/modules/module.py", "Module._call_impl")
    OF_TORCH = (own("torch.linalg.solve(a, b)", 43),)
    BACKWARD = of_library("torch/_tensor.py", "Tensor.backward"), own("loss.backward()", 44)
    IN_NUMPY = of_library("numpy/lib/recfunctions.py", "stack_arrays"), own("stack(x)", 45)
    ALONE = (own("total += x", 46),)

    @staticmethod
    def made(*stacks, busy=20.0, **torch):
        facts = {"devices": ["cuda:0"], **torch}
        return on_gpus(process(*stacks, torch=facts), busy=busy)

    @pytest.mark.parametrize(
        ("frames", "state", "count"),
        [
            (IN_TORCH, State.PYTHON, 1),
            (IN_FORWARD, State.PYTHON, 1),
            (OF_TORCH, State.PYTHON, 1),
            (BACKWARD, State.THREADS, 1),
            (BACKWARD, State.LOCK, 1),
            (OF_TORCH, State.NATIVE, 0),  # one long call
            (IN_TORCH, State.THREADS, 0),  # it computes on cores
            (IN_NUMPY, State.PYTHON, 0),
            (ALONE, State.PYTHON, 0),
        ],
    )
    def test_what_starts_kernels(self, frames, state, count):
        assert len(judged(host_bound, self.made(seen(frames, 60.0, state)))) == count

    @pytest.mark.parametrize(("starts_s", "count"), [(49.9, 0), (50.1, 1)])
    def test_threshold(self, starts_s, count):
        verdict = judged(host_bound, self.made(seen(self.IN_FORWARD, starts_s, State.PYTHON)))
        assert len(verdict) == count
        if verdict:
            assert verdict[0].severity is Severity.CRITICAL
            assert verdict[0].regain_percent == pytest.approx((0.0, 50.1))
            assert "train.py:42" in str(figures(verdict[0]))

    @pytest.mark.parametrize(("busy", "count"), [(0.0, 0), (0.1, 1), (49.9, 1), (50.0, 0)])
    def test_threshold_of_the_gpu(self, busy, count):
        made = self.made(seen(self.IN_FORWARD, 60.0, State.PYTHON), busy=busy)
        assert len(judged(host_bound, made)) == count

    def test_not_for_a_model_on_cores_or_without_a_gpu(self):
        stack = seen(self.IN_FORWARD, 60.0, State.PYTHON)
        assert judged(host_bound, self.made(stack, devices=["cpu"])) == []
        assert judged(host_bound, watched(process(stack))) == []

    def test_abstains_if_the_gpu_was_not_seen(self):
        made = self.made(seen(self.IN_FORWARD, 60.0, State.PYTHON), busy=UNSUPPORTED)
        assert isinstance(judged(host_bound, made), Abstention)
        made = self.made(seen(self.IN_FORWARD, 20.0, State.PYTHON), busy=UNSUPPORTED)
        assert judged(host_bound, made) == []


class TestTooSmall:
    @staticmethod
    def made(step_ms=1.0, size=MIB, busy=20.0, steps=1001, **torch):
        progress = Progress(steps=steps, first_s=101.0, last_s=101.0 + (steps - 1) * step_ms / 1e3)
        facts = {"parameter_bytes": size, "devices": ["cuda:0"], **torch}
        return on_gpus(process(progress=[progress], torch=facts), busy=busy)

    @pytest.mark.parametrize(
        ("facts", "count"),
        [
            ({"step_ms": 4.99}, 1),
            ({"step_ms": 5.01}, 0),
            ({"size": 10 * MIB}, 1),
            ({"size": 10 * MIB + 1}, 0),
            ({"busy": 49.9}, 1),
            ({"busy": 50.0}, 0),
            ({"steps": 2}, 1),
            ({"steps": 1}, 0),
            ({"size": None}, 0),
            ({"devices": ["cpu"]}, 0),
            ({"devices": ["cpu", "cuda:0"]}, 1),
        ],
    )
    def test_thresholds(self, facts, count):
        assert len(judged(problem_too_small, self.made(**facts))) == count

    def test_the_mean_step(self):
        finding = found(problem_too_small, self.made(step_ms=2.5))
        assert finding.sentence == (
            "A step takes only 2.5 ms, and the GPU is busy 20 % of the time: "
            "the problem is too small for a GPU."
        )
        assert figures(finding)["slowest line"] == "train.py:12  loss.backward()"
        assert finding.regain_percent is None

    def test_abstains_if_the_gpu_was_not_seen(self):
        assert isinstance(judged(problem_too_small, self.made(busy=UNSUPPORTED)), Abstention)
        assert judged(problem_too_small, self.made(busy=UNSUPPORTED, step_ms=50)) == []

    def test_not_without_steps_or_a_gpu(self):
        assert judged(problem_too_small, on_gpus(process(torch={"parameter_bytes": 1}))) == []
        made = watched(process(torch={"parameter_bytes": 1, "devices": ["cuda:0"]}))
        assert judged(problem_too_small, made) == []
        made = on_gpus(process(progress=(), loaders=[loader()], torch={"parameter_bytes": 1}))
        assert judged(problem_too_small, made) == []


class TestWithoutGpu:
    @staticmethod
    def made(*torches, signals=None):
        ranks = [process(pid=10 + n, torch=torch) for n, torch in enumerate(torches)]
        return watched(*ranks, parts=[NodePart(NODE, gpus=[signals or untouched_gpu()])])

    def test_a_build_for_cpus(self):
        finding = found(framework_without_gpu, self.made({"cuda": None, "hip": None}))
        assert finding.severity is Severity.CRITICAL
        assert (
            finding.sentence == "The job has a GPU, but its PyTorch 2.13.0 is built for CPUs only."
        )
        assert "`python -c 'import torch; print(torch.cuda.is_available())'`" in finding.action

    def test_a_build_for_intels_gpus_is_not_one_for_cpus(self):
        torch = {"version": "2.13.0+xpu", "cuda": None, "hip": None}
        sentence = found(framework_without_gpu, self.made(torch)).sentence
        assert sentence.endswith("its PyTorch 2.13.0+xpu is built for Intel's GPUs only.")

    @pytest.mark.parametrize(
        ("devices", "count"),
        [(["cpu"], 1), (["cuda:0"], 0), (["cpu", "cuda:0"], 0), ([], 0), (None, 0)],
    )
    @pytest.mark.parametrize("built", [{"cuda": "12.8"}, {"hip": "6.2"}])
    def test_a_model_in_the_hosts_memory(self, devices, count, built):
        verdict = judged(framework_without_gpu, self.made({**built, "devices": devices}))
        assert len(verdict) == count
        if verdict:
            assert verdict[0].sentence.endswith("in the node's memory, not in the GPU's memory.")

    def test_all_of_its_processes(self):
        made = self.made({"cuda": "12.8", "devices": ["cpu"]}, {"cuda": "12.8"})
        assert judged(framework_without_gpu, made) == []

    @pytest.mark.parametrize(("busy", "count"), [(0.9, 1), (1.0, 0)])
    def test_something_else_may_use_it(self, busy, count):
        # JAX computes on the GPU, PyTorch loads the data; or parameters are offloaded.
        assert len(judged(framework_without_gpu, self.made({}, signals=gpu(busy)))) == count

    def test_abstains_if_it_was_not_seen(self):
        hidden = self.made({}, signals=gpu(UNSUPPORTED))
        assert isinstance(judged(framework_without_gpu, hidden), Abstention)
        assert (
            judged(framework_without_gpu, self.made({"cuda": "12"}, signals=gpu(UNSUPPORTED))) == []
        )

    @staticmethod
    def computed_by_jax(*platforms, signals=None, **libraries):
        ranks = [
            using(process(pid=10 + n), jax={"version": "0.10.2", "platform": platform}, **libraries)
            for n, platform in enumerate(platforms)
        ]
        return watched(*ranks, parts=[NodePart(NODE, gpus=[signals or untouched_gpu()])])

    def test_jax_on_cpus(self):
        finding = found(framework_without_gpu, self.computed_by_jax("cpu", "cpu"))
        assert finding.severity is Severity.CRITICAL
        assert finding.sentence == (
            "The job has a GPU, but the program's JAX 0.10.2 computes on CPUs."
        )
        assert figures(finding) == {"version of JAX": "0.10.2", "number of GPUs": 1.0}
        assert "`pip install 'jax[cuda12]'`" in finding.action
        assert "`JAX_PLATFORMS` must not be `cpu`" in finding.action

    def test_a_tensorflow_that_is_built_for_cpus(self):
        facts = {"version": "2.19.0", "cuda": False, "rocm": False}
        parts = [NodePart(NODE, gpus=[untouched_gpu()])]
        finding = found(
            framework_without_gpu, watched(using(process(), tensorflow=facts), parts=parts)
        )
        assert finding.sentence == (
            "The job has a GPU, but its TensorFlow 2.19.0 is built for CPUs only."
        )
        assert "list_physical_devices" in finding.action
        for other in (
            {"tensorflow": {**facts, "cuda": True}},
            {"tensorflow": {"version": "2.19.0"}},
            {"tensorflow": facts, "cupy": {"version": "13"}},
        ):
            made = watched(using(process(), **other), parts=parts)
            assert judged(framework_without_gpu, made) == []

    @pytest.mark.parametrize("platforms", [("gpu",), ("cpu", "gpu"), ("cpu", None), (None,)])
    def test_all_of_jaxs_processes_are_known_to(self, platforms):
        assert judged(framework_without_gpu, self.computed_by_jax(*platforms)) == []

    def test_jax_next_to_a_pytorch_that_could(self):
        made = self.computed_by_jax("cpu", torch={"version": "2.13.0", "cuda": "12.8"})
        assert "JAX" in found(framework_without_gpu, made).sentence
        used = self.computed_by_jax(
            "cpu", torch={"version": "2.13.0", "cuda": "12.8"}, signals=gpu(1.0)
        )
        assert judged(framework_without_gpu, used) == []

    def test_abstains_if_jaxs_gpu_was_not_seen(self):
        hidden = self.computed_by_jax("cpu", signals=gpu(UNSUPPORTED))
        assert isinstance(judged(framework_without_gpu, hidden), Abstention)

    def test_other_programs_and_nodes(self):
        assert judged(framework_without_gpu, self.made(None)) == []
        assert judged(framework_without_gpu, watched(process(torch={}))) == []
