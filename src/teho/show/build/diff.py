"""The document of `teho diff`: two runs side by side."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from teho.errors import TehoError
from teho.model.allocation import Allocation
from teho.model.document import Cell, Document, Fact, Item, Report, Table
from teho.model.finding import Finding
from teho.model.run import Run
from teho.show.build.compared_plots import compared_plots
from teho.show.build.layout import column, document, listing, table
from teho.show.loaded import LoadedRun
from teho.units import format_bytes, format_duration, format_pace, format_quantity

__all__ = ["diff_document", "several_document"]

_EQUAL_PERCENT = 5.0
"""Differences below this count as equal, as in `teho compare`."""
_NOT_FIGURES = frozenset({"state_words", "job_id", "node_count", "cores_per_node"})
"""Facts that another row says too, or that differ between any two runs."""
_DIFFERS_ALWAYS = frozenset(
    {
        "JOB_ID",
        "MASTER_PORT",
        "SLURM_JOB_END_TIME",
        "SLURM_JOB_ID",
        "SLURM_JOB_START_TIME",
        "SLURM_STEP_ID",
    }
)


def diff_document(first: LoadedRun, second: LoadedRun) -> Document:
    """Return the document about two runs.

    Args:
        first: the run that the other one is compared with.
        second: the other run.
    """
    reports = (first.view_with(plots=False), second.view_with(plots=False))
    names = [run.run.name or run.run.id for run in (first, second)]
    if names[0] == names[1]:
        names = [first.run.id, second.run.id]
    problems = [problem for run in (first, second) for problem in run.problems]
    return document(
        title=f"teho diff {names[0]} {names[1]}",
        verdict=_verdict(names, (first.run, second.run), reports),
        verdict_severity="unknown" if any(not _is_whole(run.run) for run in (first, second))
        else "remark",
        tables=(
            _figures(names, reports),
            _differences(names, first.run, second.run),
        ),
        lists=(listing("findings", "Findings", _findings(names, reports)),),
        notes=(
            ("Each side is only one run, so the difference can be chance. To find out, use `teho "
             "compare`, which repeats the runs."),
        ),
        plots=tuple(compared_plots(names, [first.summary, second.summary])),
        troubles=tuple(problems),
        commands=tuple(f"`teho report {run.run.id}`" for run in (first, second)),
    )  # fmt: skip


def several_document(runs: Sequence[LoadedRun]) -> Document:
    """Return the document about three or more runs, in the order that is given."""
    reports = [run.view_with(plots=False) for run in runs]
    names = [run.run.name or run.run.id for run in runs]
    if len(set(names)) < len(names):
        names = [run.run.id for run in runs]
    variants = _verdict_of_variants(runs)
    return document(
        title=f"{len(runs)} runs",
        verdict=variants or _fastest(names, [run.run for run in runs]),
        verdict_severity="remark",
        tables=(_figures_of(names, reports), _differences_of(names, [run.run for run in runs])),
        lists=(listing("findings", "Findings", _findings_of(names, reports)),),
        notes=(
            "This is the verdict of `teho compare --recorded`."
            if variants
            else "A difference can be chance. To find out, use `teho compare`, which repeats the "
            "runs.",
        ),
        plots=tuple(compared_plots(names, [run.summary for run in runs])),
        troubles=tuple(problem for run in runs for problem in run.problems),
    )


def _verdict_of_variants(runs: Sequence[LoadedRun]) -> str:
    """Return the verdict of `teho compare --recorded`; empty if these runs do not allow one."""
    from teho.experiment.from_recordings import compare_recorded

    try:
        compared = compare_recorded([(run.directory, run.run) for run in runs], None, None)
    except TehoError:
        return ""
    is_known = any(point.comparison for point in compared.points)
    return compared.verdict if is_known and compared.outcome != "not_enough_evidence" else ""


def _fastest(names: Sequence[str], runs: Sequence[Run]) -> str:
    count = len(runs)
    if any(not _is_whole(run) for run in runs):
        return f"{count} runs side by side. At least one of them did not end with exit code 0."
    if len({run.command for run in runs}) > 1:
        return f"{count} runs side by side. Their commands differ, so the work may differ too."
    times_s = {name: run.end.elapsed_s for name, run in zip(names, runs, strict=True) if run.end}
    fastest, slowest = min(times_s, key=times_s.__getitem__), max(times_s, key=times_s.__getitem__)
    return (
        f"{fastest} took the least time of {count} runs: {format_duration(times_s[fastest])}. "
        f"{slowest} took {format_duration(times_s[slowest])}."
    )


def _figures_of(names: Sequence[str], reports: Sequence[Report]) -> Table:
    """Return the facts of all reports, one column for each run."""
    found = [{fact.key: fact for fact in one.facts if fact.key not in _NOT_FIGURES}
             for one in reports]  # fmt: skip
    keys = dict.fromkeys(key for facts in found for key in facts)
    rows = [[facts.get(key) for facts in found] for key in keys]
    return table(
        "figures",
        "What was measured",
        [row for row in rows if any(fact and fact.value is not None for fact in row)],
        column("what", "Figure", lambda row: next(one.label or one.key for one in row if one)),
        *(
            column(f"run{place}", name, partial(_text_at, place))
            for place, name in enumerate(names)
        ),
    )


def _text_at(place: int, row: Sequence[Fact | None]) -> Cell:
    return _text(row[place])


def _differences_of(names: Sequence[str], runs: Sequence[Run]) -> Table:
    """Return what was not the same in all runs, one column for each run."""
    found = [_circumstances(run) for run in runs]
    keys = dict.fromkeys(key for one in found for key in one)
    return table(
        "differences",
        "What differed",
        [key for key in keys if len({one.get(key) for one in found}) > 1],
        column("what", "What", str),
        *(
            column(f"run{place}", name, one.get)
            for place, (name, one) in enumerate(zip(names, found, strict=True))
        ),
    )


def _findings_of(names: Sequence[str], reports: Sequence[Report]) -> Iterator[Item]:
    """Yield each sentence once, with its runs; sentences of one kind are together."""
    kinds: dict[str, dict[str, tuple[Finding, list[str]]]] = {}
    for name, report in zip(names, reports, strict=True):
        for finding in report.findings:
            sentences = kinds.setdefault(finding.kind, {})
            sentences.setdefault(finding.sentence, (finding, []))[1].append(name)
    for sentences in kinds.values():
        for finding, having in sentences.values():
            yield _item("all" if len(having) == len(names) else ", ".join(having), finding)


def _is_whole(run: Run) -> bool:
    return run.end is not None and run.end.exit_code == 0


def _verdict(names: list[str], runs: tuple[Run, Run], reports: tuple[Report, Report]) -> str:
    for name, run in zip(names, runs, strict=True):
        if run.imported:
            return f"Not compared: {name} is from a log, which has no exit code."
        if not _is_whole(run):
            return f"Not compared: {name} did not end with exit code 0."
    paces = [
        next((_number(fact) for fact in report.facts if fact.key == "steps_per_s"), None)
        for report in reports
    ]
    times_s = [run.end.elapsed_s for run in runs if run.end]
    if paces[0] and paces[1]:
        ratio = paces[1] / paces[0]
        figures = [f"{format_pace(pace or 0.0)} steps/s" for pace in paces]
    else:
        ratio = times_s[0] / times_s[1] if times_s[1] else 1.0
        figures = [format_duration(time_s) for time_s in times_s]
    if runs[0].command != runs[1].command:
        return (
            f"{names[0]}: {figures[0]}, {names[1]}: {figures[1]}. The commands differ, so the work "
            "may differ too."
        )
    if abs(ratio - 1) * 100 < _EQUAL_PERCENT:
        return f"{names[0]} and {names[1]} were about equally fast: {' and '.join(figures)}."
    order = (1, 0) if ratio > 1 else (0, 1)
    faster, slower = (names[number] for number in order)
    return (
        f"{faster} was {max(ratio, 1 / ratio):.2f} times as fast as {slower}: "
        f"{' and '.join(figures[number] for number in order)}."
    )


def _figures(names: list[str], reports: tuple[Report, Report]) -> Table:
    """Return the facts of the two reports, with the difference in percent of the first."""
    first, second = (
        {fact.key: fact for fact in report.facts if fact.key not in _NOT_FIGURES}
        for report in reports
    )
    pairs = [(first.get(key), second.get(key)) for key in first | second]
    return table(
        "figures",
        "What was measured",
        [pair for pair in pairs if any(fact and fact.value is not None for fact in pair)],
        column("what", "Figure", lambda pair: next(one.label or one.key for one in pair if one)),
        column("first", names[0], lambda pair: _text(pair[0])),
        column("second", names[1], lambda pair: _text(pair[1])),
        column("difference_percent", "Difference", lambda pair: _difference_percent(*pair),
               unit="%", shown_in="%", decimals=0),
    )  # fmt: skip


def _text(fact: Fact | None) -> Cell:
    number = _number(fact)
    if fact is None or number is None:
        return fact.value if fact else None
    return format_quantity(number, fact.unit)


def _number(fact: Fact | None) -> float | None:
    value = fact.value if fact else None
    return value if isinstance(value, (int, float)) else None


def _difference_percent(first: Fact | None, second: Fact | None) -> float | None:
    before, after = _number(first), _number(second)
    return (after - before) / before * 100 if before and after is not None else None


def _findings(names: list[str], reports: tuple[Report, Report]) -> Iterator[Item]:
    """Yield the findings of either run, those of only one run first.

    If the sentences of both runs differ, each run has its own.
    """
    first, second = map(_by_kind, reports)
    for name, own, other in ((names[0], first, second), (names[1], second, first)):
        for kind, found in own.items():
            if kind not in other:
                yield from (_item(f"only {name}", finding) for finding in found)
    for kind, others in second.items():
        if kind not in first:
            continue
        if [one.sentence for one in first[kind]] == [one.sentence for one in others]:
            yield from (_item("both", finding) for finding in others)
            continue
        for name, found in zip(names, (first[kind], others), strict=True):
            yield from (_item(f"both, {name}", finding) for finding in found)


def _by_kind(report: Report) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    for finding in report.findings:
        found.setdefault(finding.kind, []).append(finding)
    return found


def _item(lead: str, finding: Finding) -> Item:
    return Item(lead=lead, text=finding.sentence, severity=finding.severity.value)


def _differences(names: list[str], first: Run, second: Run) -> Table:
    """Return what was not the same in two runs: command, place, hardware, software."""
    one, other = _circumstances(first), _circumstances(second)
    return table(
        "differences",
        "What differed",
        [what for what in one | other if one.get(what) != other.get(what)],
        column("what", "What", str),
        column("first", names[0], one.get),
        column("second", names[1], other.get),
    )


def _circumstances(run: Run) -> dict[str, str]:
    devices = [device.name or "GPU" for node in run.nodes for device in node.devices]
    found = {
        "command": shlex.join(run.command),
        "directory": run.directory,
        "host": ", ".join(node.name for node in run.nodes) or run.host,
        "CPU": ", ".join(sorted({node.cpu_model for node in run.nodes if node.cpu_model})),
        "cores": str(sum(len(node.cores) for node in run.nodes)),
        "GPUs": ", ".join(
            f"{devices.count(name)} × {name or 'GPU'}" for name in dict.fromkeys(devices)
        ),
        "tasks": str(run.step.task_count if run.step else 1),
        "sampling period": format_duration(run.period_s),
    }
    named = _named("tag", run.tags) | _named("", run.versions) | _named("", run.environment)
    return found | _request(run) | named


def _request(run: Run) -> dict[str, str]:
    """Return what the job asked for, and where, as far as it is known; of its first node."""
    allocation = run.nodes[0].allocation if run.nodes else Allocation()
    limit_s, limit_bytes = allocation.time_limit_s, allocation.memory_limit_bytes
    found = {
        "cluster": allocation.cluster,
        "partition": allocation.partition,
        "account": allocation.account,
        "time limit": None if limit_s is None else format_duration(limit_s),
        "memory limit": None if limit_bytes is None else format_bytes(limit_bytes),
    }
    return {key: value for key, value in found.items() if value}


def _named(kind: str, values: Mapping[str, str]) -> dict[str, str]:
    return {
        f"{kind} {key}".lstrip(): value
        for key, value in values.items()
        if key not in _DIFFERS_ALWAYS
    }
