"""What a recording says of a run: energy, GPUs that nobody used, frameworks that cannot."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from explain.program_parts import process
from explain.scenario_parts import UNSUPPORTED, Given, NodePart, gpu, repeated, scenario
from teho.experiment.sample import _blind, _energy, _idle_gpus
from teho.model.missing import Missing

CPU_TORCH = {"version": "2.13.0", "cuda": None, "hip": None}


@pytest.mark.parametrize(
    ("libraries", "said"),
    [
        ({"torch": CPU_TORCH}, "its PyTorch 2.13.0 is built for CPUs alone"),
        ({"torch": {**CPU_TORCH, "cuda": "12.8"}}, ""),
        ({"torch": {**CPU_TORCH, "hip": "6.2"}}, ""),
        ({"torch": {}}, ""),
        ({"jax": {"version": "0.6.0", "devices": ["cpu"]}}, "its JAX 0.6.0 sees no GPU"),
        ({"jax": {"version": "0.6.0", "devices": ["NVIDIA H100"]}}, ""),
        ({"jax": {"version": "0.6.0"}}, ""),
        # Another one may use it.
        ({"torch": CPU_TORCH, "jax": {"version": "0.6.0", "devices": ["NVIDIA H100"]}}, ""),
        ({"torch": CPU_TORCH, "cupy": {"version": "13"}}, ""),
        ({"torch": CPU_TORCH, "tensorflow": {"version": "2.19"}}, ""),
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
