"""A report says whether the trace of some steps agrees with the findings from samples."""

from __future__ import annotations

from pathlib import Path

import pytest

from profile_traces import call, kernel, mark, path_of, step, write
from teho.model.finding import Finding, Severity
from teho.profile.summary import read_traces
from teho.show.build.report.trace import trace_listing

AGREES, DIFFERS = "This agrees with the finding", "The trace does not show what this finding says"


def finding(kind: str) -> Finding:
    return Finding(
        kind=kind, severity=Severity.WARNING, sentence=f"It was {kind}.", evidence=(),
        thresholds=(), action="",
    )  # fmt: skip


def said(paths: list[Path], *kinds: str) -> list[str]:
    profiled = read_traces(paths)
    items = trace_listing(profiled, [finding(kind) for kind in kinds]).items
    texts = [item.text for item in items]
    assert texts[0] == profiled.verdict
    assert texts[len(texts) - len(profiled.advice) :] == list(profiled.advice)
    return texts[1 : len(texts) - len(profiled.advice)]


def test_real_traces() -> None:
    conv, pageable = path_of("conv"), path_of("conv-pageable-item")
    (one,) = said([conv], "host_bound")
    assert one == (
        "This agrees with the finding “It was host_bound.” In the recorded steps, the GPU waited "
        "for the program to launch a kernel for 78 % of a step."
    )
    (one,) = said([conv], "waits_for_device")
    assert one.startswith(DIFFERS)
    assert "for only 0 % of a step. Other steps may be different" in one
    assert said([pageable], "input_in_main_process")[0].startswith(AGREES)
    (one,) = said([conv], "input_slow")
    assert one.startswith(DIFFERS)  # 1.7 % of a step
    # A finding of another kind, and one of which the trace shows 6 %, are not compared.
    assert said([pageable], "gpu_one_idle", "waits_for_device") == []
    both = [path_of("ddp-gloo-0of2"), path_of("ddp-gloo-1of2")]
    assert said(both, "communication_bound")[0].startswith(AGREES)
    assert len(said([pageable], "input_slow", "input_in_main_process", "host_bound")) == 2


def test_a_loader_that_the_trace_does_not_show_is_not_denied(tmp_path: Path) -> None:
    path = write(tmp_path, [step(1, 0, 100), call(1, 80, 81), kernel(1, 85, 99)])
    assert said([path], "input_slow") == []


@pytest.mark.parametrize(
    ("waited", "begins"),
    [(10, AGREES), (9.9, ""), (5, ""), (4.9, DIFFERS)],
)
def test_thresholds(tmp_path: Path, waited: float, begins: str) -> None:
    """Without a GPU too: the time is that of the program."""
    path = write(tmp_path, [step(1, 0, 100), mark("enumerate(DataLoader)#x", 0, waited)])
    found = said([path], "input_slow")
    assert len(found) == bool(begins)
    assert all(one.startswith(begins) for one in found)
