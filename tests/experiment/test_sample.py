"""What a recording says of a run: energy, unused GPUs, frameworks that cannot use them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from experiment.samples import whole
from explain.program_parts import MAIN, loader, of_library, own, process, seen
from explain.scenario_parts import UNSUPPORTED, Given, NodePart, gpu, repeated, scenario
from teho.experiment.progress import read_progress
from teho.experiment.sample import _blind, _energy, _idle_gpus, _why, _with_steps
from teho.model.compared import Sample
from teho.model.missing import Missing
from teho.model.run import End
from teho.model.stack import Frame
from teho.model.watched import GivenBatch as Batch
from teho.model.watched import Progress

CPU_TENSORFLOW = {"version": "2.19.0", "cuda": False, "rocm": False}
CPU_TORCH = {"version": "2.13.0", "cuda": None, "hip": None}


@pytest.mark.parametrize(
    ("libraries", "said"),
    [
        ({"torch": CPU_TORCH}, "its PyTorch 2.13.0 is built for CPUs only"),
        (
            {"torch": {**CPU_TORCH, "xpu": "20250302"}},
            "its PyTorch 2.13.0 is built for Intel's GPUs only",
        ),
        ({"torch": {**CPU_TORCH, "cuda": "12.8"}}, ""),
        ({"torch": {**CPU_TORCH, "hip": "6.2"}}, ""),
        ({"torch": {}}, ""),
        ({"jax": {"version": "0.6.0", "devices": ["cpu"]}}, "the program's JAX 0.6.0 sees no GPU"),
        ({"jax": {"version": "0.6.0", "devices": ["NVIDIA H100"]}}, ""),
        ({"jax": {"version": "0.6.0"}}, ""),
        # Another one may use it.
        ({"torch": CPU_TORCH, "jax": {"version": "0.6.0", "devices": ["NVIDIA H100"]}}, ""),
        ({"torch": CPU_TORCH, "cupy": {"version": "13"}}, ""),
        ({"torch": CPU_TORCH, "tensorflow": {"version": "2.19"}}, ""),
        ({"tensorflow": CPU_TENSORFLOW}, "its TensorFlow 2.19.0 is built for CPUs only"),
        ({"tensorflow": {**CPU_TENSORFLOW, "cuda": True}}, ""),
        ({"tensorflow": {**CPU_TENSORFLOW, "rocm": True}}, ""),
        ({"tensorflow": CPU_TENSORFLOW, "cupy": {"version": "13"}}, ""),
        (
            {"tensorflow": CPU_TENSORFLOW, "jax": {"version": "0.6.0", "devices": ["NVIDIA H100"]}},
            "",
        ),
        ({"numpy": {}}, ""),
        ({}, ""),
    ],
)
def test_a_framework_that_cannot_use_a_gpu_is_named(libraries: dict[str, Any], said: str) -> None:
    assert _blind([process(), replace(process(pid=11), libraries=libraries)]) == said


@pytest.mark.parametrize(
    ("busy", "idle"),
    [
        ([0.0], 1),
        ([0.9, 50.0], 1),
        ([1.0, 50.0], 0),
        ([repeated((0.0, 59), (80.0, 1))], 0),
        ([repeated((None, 29), (0.0, 31))], 1),
        ([repeated((None, 31), (0.0, 29))], None),
        ([UNSUPPORTED], None),
        ([0.0, UNSUPPORTED], None),
        ([], None),
    ],
)
def test_gpus_that_were_never_busy_are_counted(busy: list[Given], idle: int | None) -> None:
    _, summary = scenario(NodePart(gpus=[gpu(one) for one in busy]))
    assert _idle_gpus(summary) == idle


def test_no_node_has_no_energy_and_not_zero() -> None:
    _, summary = scenario(NodePart())
    assert isinstance(_energy(replace(summary, nodes=())), Missing)


def with_steps(*, epoch: int = 0) -> Sample:
    """Return what two ranks tell that take 20 s to their first step, then 0.1 s for each."""
    times_s = tuple(120 + n / 10 for n in range(600))
    given = tuple(
        Batch(at_s - 0.01, 0.0, is_first=n % epoch == 0) for n, at_s in enumerate(times_s) if epoch
    )
    steps = Progress(steps=600, first_s=120, last_s=times_s[-1], times_s=times_s)
    stacks = [
        seen((Frame("<frozen importlib._bootstrap>", "f", 1, ""), MAIN), 4.0),
        seen((of_library("torch/_inductor/compile_fx.py", "compile_fx"), MAIN), 9.0),
        seen((own("x.to(device)"), MAIN), 2.0),
    ]
    loaders = [replace(loader(), given=given)] if epoch else []
    ranks = [process(*stacks, pid=pid, loaders=loaders, progress=[steps]) for pid in (10, 11)]
    sight = read_progress(ranks, 10.0)
    assert sight
    return _with_steps(whole(100.0), sight, ranks)


def test_start_up_compiling_and_copying_are_not_part_of_the_pace() -> None:
    found = with_steps()
    assert (found.unit, found.steps) == ("step", 600)
    assert found.start_up_s == pytest.approx(20)
    assert found.steps_per_s == pytest.approx(10, rel=0.01)
    # The first step took its 0.1 s as well.
    assert found.fixed_s == pytest.approx(19.9, abs=0.01)
    assert (found.import_s, found.compile_s, found.copy_s) == (4.0, 9.0, 2.0)
    assert (found.steps_per_epoch, found.samples_per_step) == (None, None)


def test_epochs_and_samples_of_all_ranks_are_counted() -> None:
    found = with_steps(epoch=100)
    assert (found.steps_per_epoch, found.samples_per_step) == (100, 64)
    assert found.steps_per_s == pytest.approx(10, rel=0.01)
    assert found.fixed_s == pytest.approx(20, abs=0.1)


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (0, "showed no step and did not end within 30.0 s: "),
        (4, "neither the end nor a steady step rate within 30.0 s: "),
    ],
)
def test_a_program_without_steps_gets_advice(steps: int, said: str) -> None:
    run, _ = scenario(NodePart())
    end = End(at=run.started_at, elapsed_s=30.0, exit_code=143, on_purpose="out of time")
    sample = replace(whole(30.0), is_whole=False, steps=steps)
    why = _why(replace(run, end=end), sample, [])
    assert said in why
    assert ("teho.step()" in why) == (steps == 0)


@pytest.mark.parametrize(
    ("given", "had", "is_out"), [(1, 16, True), (16, 16, False), (16, 1, False), (0, 16, False)]
)
def test_a_program_that_leaves_the_cores_that_it_was_given_is_out(
    given: int, had: int, is_out: bool
) -> None:
    run, _ = scenario(NodePart())
    (node,) = run.nodes
    end = End(at=run.started_at, elapsed_s=30.0, exit_code=0)
    run = replace(run, end=end, nodes=(replace(node, cores=tuple(range(given))),))
    why = _why(run, whole(30.0), [replace(process(), cores=tuple(range(had)))])
    assert why.startswith("the run was given 1 core, but ran on 16 cores: ") == is_out
    assert bool(why) == is_out
