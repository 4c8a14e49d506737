"""The verdict on a trial: may the long job go?"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import scenarios
from msgspec.structs import replace
from scenario_parts import NodePart, gpu, scenario

from teho.explain.analysis import Analysis
from teho.explain.judge import judge_all
from teho.explain.policy import load_policy
from teho.explain.trial import trial_verdict
from teho.model.missing import Missing, Reason
from teho.model.run import End, Run, RunState
from teho.model.summary import Summary
from teho.show.build.report.document import build_report
from teho.units import GIB

Scenario = tuple[Run, Summary]


def verdict(given: Scenario, state: RunState = RunState.FINISHED) -> tuple[str, str]:
    run, summary = given
    run = replace(run, tags={"trial": "yes"})
    findings, _ = judge_all(run, summary, load_policy())
    found = trial_verdict(run, state, summary, findings)
    assert found is not None
    report = build_report(Analysis(run, state, summary, findings=findings))
    assert (report.verdict, report.verdict_severity) == found, "it is the report's first line"
    return found


def ended(given: Scenario, **how: object) -> Scenario:
    run, summary = given
    assert run.end is not None
    return replace(run, end=replace(run.end, **how)), summary


def test_a_good_trial_lets_the_long_job_go() -> None:
    part = NodePart(gpus=[gpu(90.0)], memory_peak=90.0 * GIB)
    stopped = ended(scenario(part), exit_code=None, signal=15, on_purpose="measured long enough")
    sentence, severity = verdict(stopped)
    assert severity == "good"
    assert sentence == (
        "You can submit the long job: the trial had no error (measured long enough), the program "
        "used its GPU, and the memory use reached 25 % of the memory limit."
    )
    sentence, _ = verdict(scenario(NodePart(gpus=[gpu(90.0)] * 4)))
    assert "(exit code 0), the program used all its GPUs" in sentence
    unlimited = NodePart(cores_used=38.0, memory_limit=Missing(Reason.ABSENT))
    sentence, severity = verdict(scenario(unlimited))
    assert (severity, "GPU" in sentence) == ("good", False)
    assert sentence.endswith("and the memory use could not be compared with a memory limit.")


@pytest.mark.parametrize(
    ("given", "because"),
    [
        (scenarios.never_used_gpu, "never used."),
        (scenarios.memory_near_limit, "Memory use reached "),
        (scenarios.out_of_memory, "memory"),
        (scenarios.failed_by_itself, "The program failed: "),
    ],
    ids=lambda one: getattr(one, "__name__", None),
)
def test_what_keeps_the_long_job_back(given: Callable[[], Scenario], because: str) -> None:
    sentence, severity = verdict(given())
    assert severity == "critical"
    assert sentence.startswith("Do not submit the long job yet. ")
    assert because in sentence
    assert sentence.count("never used") <= 1


def test_some_gpus_were_never_used() -> None:
    sentence, severity = verdict(scenario(NodePart(gpus=[gpu(90.0), gpu(0.0), gpu(0.0)])))
    assert severity == "critical"
    assert "2 of 3 GPUs were never used." in sentence


def test_a_trial_that_was_cut_off_is_not_good() -> None:
    run, summary = scenario(NodePart(gpus=[gpu(90.0)]))
    sentence, severity = verdict((replace(run, end=None), summary), RunState.INTERRUPTED)
    assert (severity, "cut off" in sentence) == ("critical", True)


def test_what_was_not_recorded_is_not_judged() -> None:
    unseen = Missing(Reason.FORBIDDEN, "no permission")
    signals = dict.fromkeys(gpu(), unseen)
    sentence, severity = verdict(scenario(NodePart(gpus=[signals])))
    assert severity == "unknown"
    assert "The use of 1 GPU was not recorded" in sentence
    sentence, severity = verdict(scenarios.hidden_gpu())
    assert severity != "good", "three of its four GPUs are not visible"
    assert verdict(scenarios.nothing_recorded())[1] in {"unknown", "critical"}


def test_a_trial_is_not_blamed_for_being_short() -> None:
    run, summary = scenarios.short_job()
    findings, _ = judge_all(run, summary, load_policy())
    kinds = {one.kind for one in findings}
    assert "job_too_short" in kinds
    for tags, blamed in (({}, True), ({"trial": "yes"}, False)):
        report = build_report(
            Analysis(replace(run, tags=tags), RunState.FINISHED, summary, findings=findings)
        )
        assert ("job_too_short" in {one.kind for one in report.findings}) is blamed


def test_other_runs_and_running_trials_have_the_usual_verdict() -> None:
    run, summary = scenario(NodePart(gpus=[gpu(90.0)]))
    assert trial_verdict(run, RunState.FINISHED, summary, ()) is None
    running = replace(run, tags={"trial": "yes"}, end=None)
    assert trial_verdict(running, RunState.RUNNING, summary, ()) is None
    assert isinstance(run.end, End)
