"""What the rules say of recordings from a real GPU: an NVIDIA H200, on 2026-11-26.

`make gpu` recorded them (docs/gpu.md). Each run trained for about 12 s, so the first minute counts.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from teho.config.settings import load_settings
from teho.show.loaded import LoadedRun

RECORDINGS = Path(__file__).parents[2] / "benchmarks" / "faults" / "recordings"
FAULTS = sorted(path.parent for path in RECORDINGS.glob("*/expected.json"))
WAITS = {"waits_for_device", "copies_from_pageable_memory"}


@pytest.fixture
def kinds(tmp_path, monkeypatch):
    """Return a function: the kinds of a recording's findings, in their order."""
    thresholds = tmp_path / "thresholds.toml"
    thresholds.write_text("[job_too_short]\nelapsed_min_s = 5\n")
    monkeypatch.setenv("TEHO_THRESHOLDS", str(thresholds))

    def of(place: Path) -> list[str]:
        (run,) = (path.parent for path in place.rglob("run.json"))
        return [finding.kind for finding in LoadedRun(run, load_settings()).findings]

    return of


def test_there_are_recordings():
    assert len(FAULTS) == 14


@pytest.mark.parametrize("place", FAULTS, ids=lambda place: place.name)
def test_the_fault_is_named_first_and_no_more_after_the_repair(place, kinds):
    expected = json.loads((place / "expected.json").read_text())
    found = kinds(place)
    if "kind" in expected:
        assert found[0] == expected["kind"]
    else:
        assert found[0] != expected["not"]


@pytest.mark.parametrize(
    "name", ["15-tiny-kernels-mended", "18-no-tensor-cores", "18-no-tensor-cores-mended"]
)
def test_waiting_for_a_gpu_that_works_during_the_steps_is_no_loss(name, kinds):
    # In the first try on this GPU, these had the finding: the start of the program counted too.
    assert not WAITS & set(kinds(RECORDINGS / name))


def test_a_pipe_that_is_near_its_limit_needs_no_more_warps(kinds):
    # The FP32 pipe was active 77 % of the time while the GPU was busy, and 38 % of the whole run.
    assert "gpu_low_occupancy" not in kinds(RECORDINGS / "18-no-tensor-cores")
