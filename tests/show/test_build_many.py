"""The report on many nodes, GPUs and tasks: outliers, shown rows, missing parts."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explain.scenario_parts import UNSUPPORTED, NodePart, gpu, repeated, scenario, step, task
from explain.scenarios import HOSTS, one_gpu_differs, one_node_died, one_task_killed
from teho.explain.analysis import Analysis
from teho.explain.judge import judge_all
from teho.explain.policy import load_policy
from teho.model.document import Report
from teho.model.missing import Missing, Reason
from teho.model.run import Clock, RunState, Trouble
from teho.show.build.report import plots
from teho.show.build.report.document import build_report
from teho.show.html.heat import heat_section
from teho.show.html.page import render_html
from teho.show.json.report import render_json
from teho.show.text.document import render_text
from teho.show.text.seff import render_seff

KILLED = "were killed before Teho could record their end"


def view_of(made, state=None) -> Report:
    run, summary = made
    findings, abstentions = judge_all(run, summary, load_policy())
    state = state or (RunState.FINISHED if run.end else RunState.INTERRUPTED)
    return build_report(Analysis(run, state, summary, findings=findings, abstentions=abstentions))


def table_of(view, key):
    return next(table for table in view.tables if table.key == key)


def facts_of(view):
    return {fact.key: fact for fact in view.facts}


def text_of(view, *, detail="why"):
    return render_text(view, width=80, color=False, detail=detail)


def test_a_share_with_one_value_in_all_rows_is_in_the_title():
    text = text_of(view_of(one_gpu_differs()))
    assert "\nNodes  Tasks 8 · GPUs 8\n" in text


# Tables


def test_four_nodes():
    view = view_of(one_gpu_differs())
    assert [table.key for table in view.tables] == [
        "nodes", "gpus", "gpu_activity", "tasks", "cpus", "memory", "io", "gpu_energy",
    ]  # fmt: skip
    nodes = table_of(view, "nodes")
    assert [row["node"] for row in nodes.rows] == list(HOSTS)
    assert [row["tasks"] for row in nodes.rows] == [8] * 4
    gpus = table_of(view, "gpus")
    assert gpus.outliers == (13,)
    assert gpus.rows[13]["stands_out"] == "less power"
    assert gpus.shown == (13, 0, 1, 2)
    assert len(table_of(view, "tasks").rows) == 32
    # The rows keep their order: seff and programs count on it.
    assert [(row["node"], row["gpu"]) for row in gpus.rows] == [
        (host, number) for host in HOSTS for number in range(8)
    ]


def test_one_node_is_as_ever():
    view = view_of(scenario(NodePart(gpus=[gpu()] * 24)))
    assert [table.key for table in view.tables] == [
        "gpus", "gpu_activity", "cpus", "memory", "io", "gpu_energy",
    ]  # fmt: skip
    assert not any(table.outliers or table.shown or table.rest for table in view.tables)
    assert not any(column.aside for table in view.tables for column in table.columns)


def test_text_shows_few_json_and_html_all():
    view = view_of(one_gpu_differs())
    text = text_of(view)
    assert text.count("r01g04") < 12
    assert "… and 28 more similar GPUs: GPU busy 92 % to 94 % and power 560 W to 595 W" in text
    gpus = next(
        table for table in msgspec.json.decode(render_json(view))["tables"]
        if table["key"] == "gpus"
    )  # fmt: skip
    assert len(gpus["rows"]) == 32
    page = render_html(view)
    body = page.split('aria-label="GPUs"')[1].split("</table>")[0]
    assert body.count("<tr") == 32 + 2
    assert body.split("<tbody>")[1].startswith('<tr class="outlier"><th scope="row">r01g02</th>')


def test_seff_has_every_gpu_in_its_place():
    lines = render_seff(view_of(one_gpu_differs())).splitlines()
    load = lines[lines.index(next(line for line in lines if line.startswith("GPU load"))) + 2 :]
    assert [line.split()[:2] for line in load[:32]] == [
        [host, str(number)] for host in HOSTS for number in range(8)
    ]


def test_a_node_without_a_recording_is_a_row_of_missing():
    view = view_of(scenario(NodePart("a", gpus=[gpu()]), step=step(2, "a", "b"), tasks=[task(0)]))
    row = table_of(view, "nodes").rows[1]
    gone = Missing(Reason.UNRECORDED, "this node left no recording")
    assert row.pop("node") == "b"
    assert set(row.values()) == {gone}


def test_nodes_without_gpus_have_no_gpu_columns():
    nodes = table_of(view_of(one_task_killed()), "nodes")
    assert [column.key for column in nodes.columns] == [
        "node", "tasks", "used", "memory", "recorded",
    ]  # fmt: skip
    assert "GPU" not in nodes.note


def test_tasks_that_failed_come_first_in_the_order_of_their_ends():
    tasks = table_of(view_of(one_task_killed()), "tasks")
    assert tasks.outliers == (5, 7, 4, 2, 0, 1, 3, 6)
    assert tasks.rows[5]["ended"] == "by SIGKILL"
    assert tasks.rows[5]["elapsed"] == pytest.approx(1440)
    silent = tasks.rows[6]["ended"]
    assert isinstance(silent, Missing)
    assert "killed before it could report the value" in silent.detail


def test_if_all_tasks_ended_alike_none_is_an_outlier():
    cancelled = [task(rank, signal=15) for rank in range(8)]
    one_survived = [*cancelled[:7], task(7)]
    alike, mixed = (
        scenario(NodePart("a", ranks=range(8)), step=step(8, "a"), tasks=tasks)
        for tasks in (cancelled, one_survived)
    )
    assert table_of(view_of(alike), "tasks").outliers == ()
    assert table_of(view_of(mixed), "tasks").outliers == (0, 1, 2, 3, 4, 5, 6)


def test_while_it_runs_only_ended_tasks_are_listed():
    run, summary = one_task_killed()
    view = view_of((run, summary), RunState.RUNNING)
    assert len(table_of(view, "tasks").rows) == 7
    assert facts_of(view)["ended"].value == (
        "6 tasks with exit code 1, rank 5 by SIGKILL, 1 still running"
    )


# Ends


def ends(*tasks, count=None):
    run, summary = scenario(
        NodePart("a", ranks=range(count or len(tasks))),
        step=step(count or len(tasks), "a"),
        tasks=tasks,
    )
    return facts_of(view_of((run, summary)))["ended"].value


def test_how_tasks_ended():
    well = [task(rank) for rank in range(4)]
    assert ends(*well) == "all 4 tasks with exit code 0"
    assert ends(*well[:3], task(3, signal=15)) == "3 tasks with exit code 0, rank 3 by SIGTERM"
    assert ends(*well[:3], count=8) == "3 tasks with exit code 0, no report from ranks 3–7"
    assert ends(*[task(rank, signal=15) for rank in range(4)]) == "all 4 tasks by SIGTERM"
    assert ends(count=3) == "not known, the recorder was cut off"
    assert ends(task(0), task(1, exit_code=2), task(2, exit_code=3)) == (
        "rank 0 with exit code 0, rank 1 with exit code 2, rank 2 with exit code 3"
    )


def test_one_task_is_one_program():
    run, summary = scenario(NodePart("a"), step=step(1, "a"))
    end = scenario(NodePart("a"))[0].end
    view = view_of((msgspec.structs.replace(run, end=end), summary), RunState.FINISHED)
    assert facts_of(view)["ended"].value == "exit code 0"
    assert "task_count" not in facts_of(view)


@pytest.mark.parametrize(
    ("tasks", "words"),
    [
        ([task(0), task(1)], "COMPLETED (exit code 0)"),
        ([task(0), task(1, exit_code=3)], "FAILED (exit code 3)"),
        ([task(0, signal=9)], "FAILED (signal 9)"),
        ([task(0)], "UNKNOWN"),
    ],
)
def test_state_in_the_words_of_accounting(tasks, words):
    view = view_of(scenario(NodePart("a"), step=step(2, "a"), tasks=tasks))
    assert facts_of(view)["state_words"].value == words


def test_tasks_without_a_word_are_the_verdict_unless_something_graver_is():
    view = view_of(one_node_died())
    assert view.verdict == (
        "Ranks 24–31 on r01g04 were killed, or their node failed. 1 more finding below."
    )
    assert view.verdict_severity == "critical"
    assert view_of(one_task_killed()).verdict.startswith("Rank 5 on r01g02 was ended by SIGKILL")
    cut = view_of(scenario(NodePart("a", gpus=[gpu()]), step=step(2, "a")))
    assert (
        cut.verdict
        == "The GPU was busy 92 % of the time (run time 1 h). The recording was cut off."
    )


# What is missing


def test_what_is_missing_is_reported():
    view = view_of(one_node_died())
    assert view.troubles == (
        (
            "The samples of r01g04 stop after 40 min, but the run took 1 h: the recorder was "
            "killed, or the node failed."
        ),
        f"Ranks 24–31 on r01g04 {KILLED}.",
    )
    assert facts_of(view)["gpu_energy_j"].note == "at least"
    for sentence in view.troubles:
        for detail in ("brief", "default", "why"):
            assert sentence[:40] in text_of(view, detail=detail)


def test_a_missing_node_is_reported_and_no_sum_is_claimed():
    parts = [NodePart(host, gpus=[gpu()]) for host in HOSTS[:3]]
    tasks = [task(rank, HOSTS[rank]) for rank in range(4)]
    made = scenario(*parts, step=step(4, *HOSTS), tasks=tasks)
    view = view_of(made)
    facts = facts_of(view)
    assert view.troubles == ("r01g04 left no recording.",)
    assert view.verdict.endswith(". r01g04 left no recording.")
    assert view.verdict_severity == "unknown"
    assert (facts["nodes"].value, facts["nodes"].note) == (4, "3 recorded")
    for key in ("gpu_energy_j", "cores_used"):
        assert facts[key].value == Missing(Reason.UNRECORDED, "r01g04 left no recording")
    assert view_of(made, RunState.RUNNING).troubles == ("r01g04 left no recording so far.",)


def test_nodes_without_a_name_are_counted():
    of_step = msgspec.structs.replace(step(4), node_count=4)
    view = view_of(scenario(NodePart("a"), NodePart("b"), step=of_step, tasks=[]))
    assert view.troubles[0] == "2 of 4 nodes left no recording."


@pytest.mark.parametrize(
    ("nodes", "sentences"),
    [
        (1, ["Rank 1 on n0 was killed before Teho could record its end."]),
        (6, [f"Ranks 1, 3, 5, 7 and 2 more on n0, n1, n2, n3 and 2 more {KILLED}."]),
    ],
)
def test_silence_of_many_nodes_is_one_sentence(nodes, sentences):
    names = [f"n{number}" for number in range(nodes)]
    parts = [NodePart(name, ranks=(2 * i, 2 * i + 1)) for i, name in enumerate(names)]
    tasks = [task(2 * i, name) for i, name in enumerate(names)]
    view = view_of(scenario(*parts, step=step(2 * nodes, *names), tasks=tasks))
    assert list(view.troubles) == sentences


def test_when_all_were_killed_no_list_follows():
    view = view_of(scenario(NodePart("a", ranks=range(4)), step=step(4, "a")))
    assert view.troubles == (f"The 4 tasks {KILLED}.",)


def test_clocks_that_differ_by_a_second_or_more_are_reported():
    clocks = [None, Clock(ahead_s=1.0, uncertainty_s=0.002),
              Clock(ahead_s=-3.25, uncertainty_s=0.002), None]  # fmt: skip
    parts = [NodePart(host, clock=clock) for host, clock in zip(HOSTS, clocks, strict=True)]
    tasks = [task(rank, host) for rank, host in enumerate(HOSTS)]
    view = view_of(scenario(*parts, step=step(4, *HOSTS), tasks=tasks))
    assert view.notes == (
        (
            "The clock of r01g03 is 3.2 s behind the clock of r01g01 (± 2 ms). The times of the "
            "samples of r01g03 are corrected."
        ),
        (
            "The clock of r01g04 could not be compared with the clock of r01g01. So the "
            "times of the samples are not corrected."
        ),
    )


def test_the_same_note_of_many_nodes_is_one_line():
    run, summary = scenario(*(NodePart(host) for host in HOSTS))
    notes = [("of all", "of some"), ("of all", "of some"), ("of all",), ("of all",)]
    nodes = tuple(
        msgspec.structs.replace(node, notes=some)
        for node, some in zip(run.nodes, notes, strict=True)
    )
    view = view_of((msgspec.structs.replace(run, nodes=nodes), summary))
    assert view.notes == ("of all", "r01g01 and r01g02: of some")


def test_a_task_s_trouble_names_its_node():
    run, summary = scenario(
        NodePart("a"),
        NodePart("b"),
        step=step(2, "a", "b"),
        tasks=[
            task(0, "a"),
            msgspec.structs.replace(
                task(1, "b"), troubles=(Trouble(elapsed_s=61, what="it went wrong"),)
            ),
        ],
    )
    assert view_of((run, summary)).troubles == ("b: After 1 min 1 s: it went wrong.",)


# Means


def test_busy_is_weighted_by_time_and_says_of_how_many():
    parts = [
        NodePart("a", gpus=[gpu(90.0), gpu(UNSUPPORTED)]),
        NodePart("b", gpus=[gpu(repeated((30.0, 20), (None, 40)))]),
    ]
    fact = facts_of(view_of(scenario(*parts)))["gpu_busy_percent"]
    assert fact.value == pytest.approx((90 * 60 + 30 * 20) / 80)
    assert fact.note == "2 of 3 GPUs"


# Plots of very many GPUs


def test_a_plot_of_very_many_gpus_has_a_line_for_each_node(monkeypatch):
    parts = [
        NodePart("a", gpus=[gpu(90.0), gpu(UNSUPPORTED), gpu(70.0)]),
        NodePart("b", gpus=[gpu(repeated((30.0, 20), (None, 40)))]),
    ]

    def lines() -> dict[str, set[float | None]]:
        (plot,) = [one for one in view_of(scenario(*parts)).plots if one.key == "gpu_busy_percent"]
        return {line.label: set(line.values) for line in plot.series}

    assert lines() == {
        "a GPU 0": {90.0}, "a GPU 2": {70.0}, "b GPU 0": {30.0, None},
    }  # fmt: skip
    monkeypatch.setattr(plots, "_MOST_LINES", 3)
    assert lines() == {"a, mean of 2 GPUs": {80.0}, "b, mean of 1 GPU": {30.0, None}}


# Heat map


def test_heat_map_has_a_row_for_every_gpu_seen_or_not():
    parts = [NodePart("a", gpus=[gpu(90.0), gpu(UNSUPPORTED)]), NodePart("b", gpus=[gpu(30.0)])]
    heat = view_of(scenario(*parts)).heat_map
    assert [line.label for line in heat.series] == ["a GPU 0", "a GPU 1", "b GPU 0"]
    assert set(heat.series[0].values) == {90.0}
    assert set(heat.series[1].values) == {None}


def test_heat_map_of_very_many_gpus_has_the_least_busy_gpu_of_each_node(monkeypatch):
    monkeypatch.setattr(plots, "_MOST_LINES", 3)
    parts = [
        NodePart("a", gpus=[gpu(90.0), gpu(UNSUPPORTED), gpu(repeated((30.0, 20), (95.0, 40)))]),
        NodePart("none"),
        NodePart("b", gpus=[gpu(UNSUPPORTED)]),
    ]
    heat = view_of(scenario(*parts)).heat_map
    assert heat.title == "Every node over time"
    assert [line.label for line in heat.series] == ["a", "b"]
    assert (heat.series[0].values[0], heat.series[0].values[-1]) == (30.0, 90.0)
    assert set(heat.series[1].values) == {None}
    page = heat_section(heat)
    assert ">a</text>" in page
    assert ">b</text>" in page


@pytest.mark.parametrize("gpus", [[], [gpu()], [gpu(UNSUPPORTED)] * 4])
def test_without_several_gpus_or_anything_seen_there_is_none(gpus):
    assert view_of(scenario(NodePart(gpus=gpus))).heat_map is None


@given(st.lists(st.none() | st.floats(0, 100), min_size=1, max_size=600))
@settings(max_examples=40, deadline=None)
def test_wide_columns_are_means_of_what_was_seen(values):
    run, summary = scenario(NodePart(gpus=[gpu(), gpu()]))
    (node,) = summary.nodes
    gpus = tuple(
        msgspec.structs.replace(one, series={"gpu_busy_percent": values}) for one in node.gpus
    )
    summary = msgspec.structs.replace(
        summary, bin_count=len(values), bin_s=3600 / len(values),
        nodes=(msgspec.structs.replace(node, gpus=gpus),),
    )  # fmt: skip
    heat = build_report(Analysis(run, RunState.FINISHED, summary)).heat_map
    if all(value is None for value in values):
        assert heat is None
        return
    width = -(-len(values) // 120)
    assert len(heat.elapsed_s) == -(-len(values) // width) <= 120
    for column, shown in enumerate(heat.series[0].values):
        part = [v for v in values[column * width : (column + 1) * width] if v is not None]
        if part:
            assert shown == pytest.approx(sum(part) / len(part), rel=1e-4)
        else:
            assert shown is None
    end_s = heat.elapsed_s[-1] + (len(values) - (len(heat.elapsed_s) - 1) * width) * (
        summary.bin_s / 2
    )
    assert end_s == pytest.approx(3600, abs=0.01)
