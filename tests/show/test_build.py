"""The report on a run: verdict and facts, and all scenarios in all formats."""

from __future__ import annotations

from datetime import datetime, timezone

import msgspec
import pytest

from explain.program_parts import own, process, seen
from explain.scenario_parts import NodePart, scenario
from explain.scenarios import SCENARIOS
from teho.explain.analysis import Analysis
from teho.explain.judge import judge_all
from teho.explain.policy import load_policy
from teho.explain.program import program_of
from teho.model.document import Report
from teho.model.finding import Severity
from teho.model.missing import Missing, Reason
from teho.model.program import Program
from teho.model.run import End, Run, RunState, Trouble
from teho.model.stack import State
from teho.model.summary import Summary
from teho.model.watched import Progress
from teho.show.build.report.document import build_report
from teho.show.html.page import render_html
from teho.show.json.report import render_json
from teho.show.text.document import render_text
from teho.show.text.seff import render_seff

ENDED = End(
    at=datetime(2026, 11, 20, tzinfo=timezone.utc), elapsed_s=3600, exit_code=0, cpu_s=10.0,
    peak_process_bytes=1,
)  # fmt: skip


def view_of(name: str, state: RunState = RunState.FINISHED, **changes: object) -> Report:
    run, summary = SCENARIOS[name]()
    run = msgspec.structs.replace(run, **({"end": run.end or ENDED} | changes))
    findings, abstentions = judge_all(run, summary, load_policy())
    return build_report(Analysis(run, state, summary, findings=findings, abstentions=abstentions))


def facts_of(view: Report) -> dict[str, object]:
    return {fact.key: fact.value for fact in view.facts}


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_every_scenario_has_every_face(name: str) -> None:
    view = view_of(name)
    for full in (True, False):
        text = render_text(view, width=80, color=False, detail="why" if full else "brief")
        first = text.splitlines()[0]
        assert first[2:12] == view.verdict[:10]
    assert "<main" in render_html(view)
    assert render_seff(view).endswith("\n")
    assert view.verdict in msgspec.json.decode(render_json(view))["verdict"]


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_the_verdict_is_the_gravest_finding_or_what_was_used(name: str) -> None:
    view = view_of(name)
    grave = [finding for finding in view.findings if finding.severity is not Severity.REMARK]
    if grave:
        assert view.verdict.startswith(grave[0].sentence)
        assert view.verdict_severity == grave[0].severity.value
        assert ("more finding" in view.verdict) == (len(grave) > 1)
    else:
        assert view.verdict_severity in {"good", "unknown"}


def test_a_well_used_node_is_reported_as_one() -> None:
    view = view_of("well_used_8_gpus")
    assert view.verdict_severity == "good"
    assert view.verdict.startswith("The 8 GPUs were busy ")
    assert view.verdict.endswith("No problems found.")


def test_without_rows_nothing_is_claimed() -> None:
    view = view_of("nothing_recorded")
    assert view.verdict_severity == "unknown"
    assert view.verdict.startswith("Not judged: ")


@pytest.mark.parametrize(
    ("state", "end", "words", "seff"),
    [
        (RunState.RUNNING, None, "still running", "RUNNING"),
        (RunState.INTERRUPTED, None, "not known, the recorder was cut off", "UNKNOWN"),
        (RunState.FINISHED, {"exit_code": 0}, "exit code 0", "COMPLETED (exit code 0)"),
        (RunState.FINISHED, {"exit_code": 3}, "exit code 3", "FAILED (exit code 3)"),
        (RunState.FINISHED, {"signal": 9}, "by SIGKILL", "FAILED (signal 9)"),
        (RunState.FINISHED, {"signal": 63}, "by signal 63", "FAILED (signal 63)"),
    ],
)
def test_how_it_ended(state: RunState, end: dict | None, words: str, seff: str) -> None:
    changes = None
    if end is not None:
        changes = msgspec.structs.replace(ENDED, **({"exit_code": None} | end))
    view = view_of("well_used_8_gpus", state, end=changes)
    facts = facts_of(view)
    assert (facts["ended"], facts["state_words"]) == (words, seff)
    assert f"State: {seff}" in render_seff(view)
    if end is None:
        assert "No problems found" not in view.verdict


FAILED = [{"exit_code": 1}, {"signal": 9}, {"signal": 15}, {"exit_code": 130}, {"exit_code": 124}]


@pytest.mark.parametrize("end", FAILED)
@pytest.mark.parametrize("name", ["well_used_8_gpus", "loops_in_python", "nothing_recorded"])
def test_a_failed_run_is_reported_as_failed_first_in_every_format(name: str, end: dict) -> None:
    ended = msgspec.structs.replace(ENDED, **({"exit_code": None} | end))
    view = view_of(name, end=ended)
    assert view.findings[0].kind == "run_failed"
    assert view.verdict.startswith(view.findings[0].sentence)
    assert view.verdict_severity in {"critical", "warning"}
    for full in (True, False):
        text = render_text(view, width=200, color=False, detail="why" if full else "brief")
        assert text.splitlines()[0][2:].startswith(view.findings[0].sentence)
        assert "✓" not in text
    page = render_html(view)
    assert page.index(view.findings[0].sentence[:22]) < page.index("<dl")
    assert 'class="good"' not in page
    told = msgspec.json.decode(render_json(view))
    assert told["verdict"].startswith(view.findings[0].sentence)
    assert told["verdict_severity"] != "good"


def test_other_findings_follow_after_the_failure() -> None:
    view = view_of("loops_in_python", end=msgspec.structs.replace(ENDED, exit_code=1))
    assert [finding.kind for finding in view.findings] == ["run_failed", "python_bound"]
    assert view.verdict.endswith("1 more finding below.")


@pytest.mark.parametrize("end", FAILED)
def test_a_run_that_failed_is_not_good_even_if_no_rule_judged_it(end: dict) -> None:
    run, summary = SCENARIOS["well_used_8_gpus"]()
    ended = msgspec.structs.replace(ENDED, **({"exit_code": None} | end))
    view = build_report(
        Analysis(msgspec.structs.replace(run, end=ended), RunState.FINISHED, summary)
    )
    assert view.verdict_severity == "critical"
    assert ". The program failed: " in view.verdict


def test_the_pace_is_shown_if_steps_are_known() -> None:
    (pace,) = (fact for fact in view_of("fed_well").facts if fact.key == "steps_per_s")
    assert (pace.value, pace.unit, pace.note) == (999 / 90, "steps/s", "over 1,000 steps")
    assert "steps_per_s" not in facts_of(view_of("well_used_8_gpus"))
    run, summary = SCENARIOS["fed_well"]()
    for progress in ((), (Progress(steps=1, first_s=5.0, last_s=5.0),)):
        main = summary.program.mains[0]
        process = msgspec.structs.replace(main.process, progress=progress)
        program = Program(mains=(msgspec.structs.replace(main, process=process),))
        made = msgspec.structs.replace(summary, program=program)
        assert "steps_per_s" not in facts_of(build_report(Analysis(run, RunState.FINISHED, made)))


def test_the_pace_of_the_last_minute_of_a_run_that_continues() -> None:
    run, summary = SCENARIOS["fed_well"]()
    main = summary.program.mains[0]
    end_s = main.process.until_s
    progress = (
        Progress(steps=500, first_s=end_s - 200, last_s=end_s - 100),
        Progress(steps=600, first_s=end_s - 200, last_s=end_s),
    )
    process = msgspec.structs.replace(main.process, progress=progress)
    program = Program(mains=(msgspec.structs.replace(main, process=process),))
    made = msgspec.structs.replace(summary, program=program)
    facts = {fact.key: fact for fact in build_report(Analysis(run, RunState.RUNNING, made)).facts}
    assert facts["steps_per_s"].value == 599 / 200
    assert (facts["steps_per_s_now"].value, facts["steps_per_s_now"].note) == (1.0, "-67 %")
    assert "steps_per_s_now" not in facts_of(build_report(Analysis(run, RunState.FINISHED, made)))


def test_a_sum_that_lacks_a_part_is_missing_not_smaller() -> None:
    run, summary = SCENARIOS["well_used_8_gpus"]()
    reason = Missing(Reason.UNSUPPORTED, "no counter")
    node, *others = summary.nodes
    gpus = (msgspec.structs.replace(node.gpus[0], energy_j=reason), *node.gpus[1:])
    nodes = (msgspec.structs.replace(node, gpus=gpus), *others)
    summary = msgspec.structs.replace(summary, nodes=nodes)
    assert (
        facts_of(build_report(Analysis(run, RunState.FINISHED, summary)))["gpu_energy_j"] == reason
    )


def test_troubles_are_shown_once() -> None:
    run, summary = SCENARIOS["well_used_8_gpus"]()
    trouble = Trouble(elapsed_s=61, what="samples could not be written: No space left on device")
    node = msgspec.structs.replace(run.nodes[0], troubles=(trouble,))
    run = msgspec.structs.replace(run, troubles=(trouble,), nodes=(node,))
    view = build_report(
        Analysis(run, RunState.FINISHED, summary, problems=["x.parquet: broken"] * 2)
    )
    assert view.troubles == (
        "After 1 min 1 s: samples could not be written: No space left on device.",
        "x.parquet: broken",
    )
    assert "No space left" in render_text(view, width=80, color=False, detail="brief")


def several_nodes() -> tuple[Run, Summary]:
    run, summary = SCENARIOS["never_used_16_gpus"]()
    assert len(summary.nodes) > 1
    return run, summary


def test_nodes_are_named_if_there_are_several() -> None:
    run, summary = several_nodes()
    trouble = Trouble(elapsed_s=5, what="a thing")
    nodes = (msgspec.structs.replace(run.nodes[1], troubles=(trouble,)), *run.nodes[1:])
    view = build_report(
        Analysis(msgspec.structs.replace(run, nodes=nodes), RunState.FINISHED, summary)
    )
    assert view.troubles == (f"{nodes[0].name}: After 5.0 s: a thing.",)
    busy = next(plot for plot in view.plots if plot.key == "gpu_busy_percent")
    assert busy.series[0].label == f"{summary.nodes[0].name} GPU 0"
    assert facts_of(view)["nodes"] == len(run.nodes)


def test_plots_are_in_the_unit_that_they_say() -> None:
    run, summary = SCENARIOS["well_used_8_gpus"]()
    view = build_report(Analysis(run, RunState.FINISHED, summary))
    for plot in view.plots:
        assert len(plot.elapsed_s) == summary.bin_count
        assert all(len(series.values) == summary.bin_count for series in plot.series)
    units = {plot.key: plot.unit for plot in view.plots}
    assert units["gpu_busy_percent"] == "%"
    assert units.get("job_cpu_s", "cores") == "cores"
    assert units.get("gpu_energy_j", "W") == "W"


@pytest.mark.parametrize(
    ("elapsed_s", "words"),
    [
        (
            19.0,
            (
                "100 % of the time was spent on running Python code, most of it at train.py:12 "
                "(`kick(x)`). The run was too short to judge its use of cores and memory."
            ),
        ),
        (1.9, ", but the run was too short to judge."),
    ],
)
def test_the_verdict_of_a_short_run_says_where_the_time_went(elapsed_s: float, words: str) -> None:
    run, summary = scenario(NodePart(cores=8, cores_used=1.0), elapsed_s=elapsed_s)
    loop = seen((own("kick(x)"),), elapsed_s, State.PYTHON)
    one = process(loop, wall_s=elapsed_s, node=summary.nodes[0].name, progress=())
    summary = msgspec.structs.replace(summary, program=program_of([one]))
    findings, abstentions = judge_all(run, summary, load_policy())
    short = [one for one in findings if one.kind == "job_too_short"]
    view = build_report(
        Analysis(run, RunState.FINISHED, summary, findings=short, abstentions=abstentions)
    )
    assert view.verdict_severity == "unknown"
    assert view.verdict.endswith(words)
