"""A trace is a finding of the report, and corrects the findings from samples."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest

from profile_traces import call, copy, kernel, mark, path_of, step, write
from teho.model.finding import Certainty, Finding, Severity
from teho.profile.summary import read_traces
from teho.show.build.report.trace import KIND, findings_with_trace
from teho.show.loaded import LoadedRun

LEARN = Path(__file__).parents[2] / "examples" / "learn" / "runs"


def finding(kind: str, severity: Severity = Severity.WARNING) -> Finding:
    return Finding(
        kind=kind, severity=severity, sentence=f"It was {kind}.", evidence=(),
        thresholds=(), action="Change it.", regain_percent=(10, 20),
    )  # fmt: skip


def found(paths: list[Path], *kinds: str) -> tuple[Finding, ...]:
    return findings_with_trace(read_traces(paths), [finding(kind) for kind in kinds], "a-run")


def seen(finding: Finding) -> list[tuple[str, float]]:
    return [(one.label, round(one.value, 1)) for one in finding.evidence]


def test_a_finding_that_the_trace_shows_has_this_as_evidence() -> None:
    first, own = found([path_of("conv")], "host_bound")
    assert (first.severity, first.sentence) == (Severity.WARNING, "It was host_bound.")
    assert seen(first) == [("idle, nothing launched yet, in the trace", 78.2)]
    # The loss is already reported, so the trace is only a remark, with the parts of a step.
    assert (own.kind, own.severity, own.certainty) == (KIND, Severity.REMARK, Certainty.LIKELY)
    assert own.sentence == (
        "The GPU was idle for 80 % of a step: the program had not yet launched the next kernel (a "
        "function on the GPU). This is from the trace of 3 steps. Without the profiler, this time "
        "is shorter."
    )
    assert seen(own) == [
        ("idle, nothing launched yet", 78.2), ("computing", 19.1), ("idle, waiting for data", 1.7),
    ]  # fmt: skip
    assert "torch.compile(model" in own.action


def test_a_finding_that_the_trace_does_not_show_is_only_possible() -> None:
    own, first = found([path_of("conv")], "waits_for_device")
    assert own.kind == KIND
    assert (first.kind, first.severity) == ("waits_for_device", Severity.REMARK)
    assert (first.certainty, first.regain_percent) == (Certainty.POSSIBLE, None)
    assert first.sentence == (
        "It was waits_for_device. But in the recorded steps, the GPU was idle because the program "
        "had waited for its results for only 0 % of a step."
    )
    assert first.action == (
        "Record other steps first (`teho profile --steps`), because they may be different. Change "
        "it."
    )
    assert seen(first) == [("idle, after synchronising, in the trace", 0)]


def test_other_findings_stay_as_they_are() -> None:
    kinds = ("gpu_one_idle", "run_failed")
    assert found([path_of("conv")], *kinds)[:2] == tuple(finding(kind) for kind in kinds)


def test_each_input_cause_is_compared() -> None:
    pageable = path_of("conv-pageable-item")
    kinds = ("input_slow", "input_in_main_process", "host_bound")
    assert all(one.evidence for one in found([pageable], *kinds))
    # 6 % of a step: neither more nor less than the samples show.
    waits = next(one for one in found([pageable], "waits_for_device") if one.kind != KIND)
    assert (waits.severity, waits.certainty) == (Severity.WARNING, Certainty.SURE)


def test_ranks_that_exchange_data() -> None:
    both = [path_of("ddp-gloo-0of2"), path_of("ddp-gloo-1of2")]
    (first, own) = found(both, "communication_bound")
    assert (first.kind, own.severity) == ("communication_bound", Severity.REMARK)


@pytest.mark.parametrize("name", ["conv-pageable-item", "ddp-gloo-0of2"])
def test_a_loss_that_samples_do_not_show_is_a_warning(name: str) -> None:
    (own,) = found([path_of(name)])
    profiled = read_traces([path_of(name)])
    assert own.severity is Severity.WARNING
    assert own.sentence.startswith(profiled.verdict)
    assert own.action == " ".join(profiled.advice)


def test_a_busy_gpu_is_a_remark(tmp_path: Path) -> None:
    path = write(tmp_path, [step(1, 0, 100), call(1, 0, 1), kernel(1, 2, 99)])
    assert found([path], "gpu_one_idle")[0].kind == "gpu_one_idle"
    (own,) = found([path])
    assert own.severity is Severity.REMARK
    assert own.sentence.startswith("The GPU was busy for 97 % of a step, mostly with matrix")
    assert own.action == "`teho profile a-run` shows all parts of a step."


def test_late_launches_alone_may_be_of_the_profiler(tmp_path: Path) -> None:
    late = [step(1, 0, 100), call(1, 60, 61), kernel(1, 65, 99)]
    (own,) = found([write(tmp_path, late)])
    assert own.severity is Severity.REMARK
    assert own.sentence.endswith("Without the profiler, this time is shorter.")
    (own,) = found([write(tmp_path, [*late, call(2, 61, 62), copy(2, 40, 60)])])
    assert own.severity is Severity.WARNING


def test_a_loader_that_the_trace_does_not_show_is_not_denied(tmp_path: Path) -> None:
    path = write(tmp_path, [step(1, 0, 100), call(1, 80, 81), kernel(1, 85, 99)])
    assert found([path], "input_slow")[0] == finding("input_slow")


@pytest.mark.parametrize(
    ("waited", "severity"),
    [(10, Severity.WARNING), (5, Severity.WARNING), (4.9, Severity.REMARK)],
)
def test_thresholds(tmp_path: Path, waited: float, severity: Severity) -> None:
    """Without a GPU too: the time is that of the program."""
    path = write(tmp_path, [step(1, 0, 100), mark("enumerate(DataLoader)#x", 0, waited)])
    first = next(one for one in found([path], "input_slow") if one.kind == "input_slow")
    assert first.severity is severity
    assert seen(first) == [("waiting for data, in the trace", waited)]


def test_a_hint_stays_a_hint(tmp_path: Path) -> None:
    path = write(tmp_path, [step(1, 0, 100), mark("enumerate(DataLoader)#x", 0, 1)])
    hint = finding("input_slow", Severity.HINT)
    assert findings_with_trace(read_traces([path]), [hint], "a-run")[-1].severity is Severity.HINT


def test_the_verdict_of_a_run_changes_with_its_trace(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(LEARN / "20261123-122908-starved-bbzr", run)
    before = LoadedRun.open(str(run)).view
    assert before.findings[0].kind.startswith("input_")
    assert before.verdict.startswith(before.findings[0].sentence)
    assert before.verdict_severity == "warning"
    path = write(tmp_path, [step(1, 0, 100), mark("enumerate(DataLoader)#x", 0, 1)])
    (run / "traces").mkdir()
    (run / "traces" / "c1-1-0-abc123.json.gz").write_bytes(gzip.compress(path.read_bytes()))
    after = LoadedRun.open(str(run)).view
    assert after.verdict_severity == "unknown"
    assert after.verdict.endswith(
        f"{before.findings[0].sentence} But in the recorded steps, the program waited for its data "
        "loader for only 1.0 % of a step."
    )
