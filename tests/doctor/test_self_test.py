"""The self-test: real products in a real Python, and what is made of wrong ones."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from small_pythons import small_python
from snapshots import NO_ANSWER, SOUND, build, changed, nvidia, python, report, survey

from teho.bench.examples import MATMUL
from teho.doctor.self_test import _judged, self_test
from teho.model.bench import Agreement, Measured, Participant, Timing
from teho.model.software import Package

Teho = Callable[..., subprocess.CompletedProcess[str]]


def measured(*participants: Participant, timed: bool = True, error: float = 1e-7) -> Measured:
    point = {"size": 4096, "precision": "FP32"}
    of = {"point": point, "library": "torch", "placement": "gpu:1"}
    timing = Timing(
        **of, phase="kernel", first_s=0.5, median_s=0.0025, low_s=0.0024, high_s=0.0026,
        noise_percent=4.0, drift_percent=None, samples=10, calls=1, flop_per_s=55e12,
        peak_percent=82.0,
    )  # fmt: skip
    agreement = Agreement(
        **of, reference="numpy on cpu:8", error=error, tolerance=2**-19, agrees=True
    )
    return Measured(
        name="matmul", title="", verdict="", axis="size", figure="flop", phases=("kernel",),
        groups={}, participants=participants, agreements=(agreement,),
        timings=(timing,) if timed else (), left=(), crossovers=(), amortisations=(), notes=(),
        elapsed_s=1.0,
    )  # fmt: skip


def torch(**more: str) -> Participant:
    return Participant(library="torch", placement="gpu:1", **more)


def test_what_a_gpu_reached() -> None:
    numpy = Participant(library="numpy", placement="cpu:8", version="2.1.0")
    found = _judged(measured(numpy, torch(version="2.5.1", device="NVIDIA H100")), "gpu:1")
    assert found.state == "passed"
    (product,) = found.products
    assert (product.library, product.device) == ("torch 2.5.1", "NVIDIA H100")
    assert (product.flop_per_s, product.peak_percent, product.error) == (55e12, 82.0, 1e-7)


@pytest.mark.parametrize(
    ("why", "state"),
    [
        ("disagrees", "failed"),
        ("died", "failed"),
        ("no_gpu", "failed"),
        ("cpu_only_build", "failed"),
        ("broken", "failed"),
        ("not_installed", "not_run"),
    ],
)
def test_what_came_of_it_otherwise(why: str, state: str) -> None:
    found = _judged(measured(torch(why=why, text="in words"), timed=False), "gpu:1")
    assert (found.state, found.why) == (
        state,
        "torch: in words" if why in {"disagrees", "died"} else "in words",
    )


def test_it_does_not_start_if_it_would_hang() -> None:
    hung = changed(survey=survey(nvidia(state="failed", why="it did not answer")))
    assert self_test(hung, {}).why == "it did not answer"
    assert self_test(changed(python=NO_ANSWER), {}).state == "not_run"
    alone = changed(python=python(build("tensorflow"), tensorflow=report()))
    numpy = Package(name="numpy", version="2.1.0", origin="pip")
    alone = changed(python=msgspec.structs.replace(alone.python, packages=(numpy,)))
    assert self_test(alone, {}).why == "TensorFlow has no self-test"
    assert MATMUL.checks  # every library is held against another one first
    assert SOUND.gpus


def test_the_real_thing(teho: Teho, torch_python: Path) -> None:
    result = teho("doctor", "--self-test", "--only", "clock", "--python", torch_python,
                  "--format", "json")  # fmt: skip
    told = json.loads(result.stdout)["self_test"]
    assert told["state"] == "passed", told
    names = {one["library"].split()[0] for one in told["products"]}
    assert names == {"numpy", "torch"}
    for one in told["products"]:
        assert one["flop_per_s"] > 1e8
        assert one["error"] is None or one["error"] < 2**-19
    assert result.returncode == 0


def test_a_python_without_numpy_is_named(teho: Teho, tmp_path: Path) -> None:
    python = small_python(tmp_path / "env")
    result = teho("doctor", "--self-test", "--only", "clock", "--python", python)
    assert result.returncode == 2
    assert "The self-test could not be run" in result.stdout
    assert "has no NumPy" in " ".join(result.stdout.split())
