"""The newest values of running recordings as OpenMetrics text, for a scrape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path

from teho.jobs.export.labels import info_labels, labels_of, memory_labels
from teho.jobs.export.openmetrics import FACT_HEADS, escaped, head_of
from teho.jobs.exporters import JOB_INFO, OWN_MEMORY, own_name
from teho.model.metric import METRICS
from teho.model.run import Node, Run, RunState
from teho.store.index import newest_runs
from teho.store.read import read_run, run_state, samples_of_node

__all__ = ["live_text"]

_OLDEST_RUN = timedelta(days=40)
"""Runs that began earlier are not read: no usual job is longer."""
_STALE_S = 60.0
"""A recorder writes its samples every 10 s. Older values are not shown."""


def live_text(home: Path, owner: str) -> str:
    """Return the newest values of all running recordings; only `# EOF` if no run is recorded.

    If two runs are recorded on one node, a series that both have gets the values of the newer run.

    Args:
        home: the directory of all recordings.
        owner: the user, for the series with the job.
    """
    lines: dict[str, dict[str, str]] = {}
    for run, directory in _running(home):
        about = info_labels(run, owner)
        for node in run.nodes:
            for name, labels, value in _values(run, directory, node, about):
                inner = ",".join(f'{label}="{escaped(text)}"' for label, text in labels.items())
                lines.setdefault(name, {}).setdefault(inner, value)
    parts = []
    for metric in METRICS:
        name = own_name(metric)
        if name in lines:
            parts += [head_of(metric), *_lines(name, lines[name])]
    for name, head in FACT_HEADS.items():
        if name in lines:
            parts += [head, *_lines(name, lines[name])]
    return "".join([*parts, "# EOF\n"])


def _lines(name: str, values: Mapping[str, str]) -> Iterator[str]:
    return (f"{name}{{{labels}}} {value}\n" for labels, value in values.items())


def _running(home: Path) -> Iterator[tuple[Run, Path]]:
    oldest = datetime.now(timezone.utc) - _OLDEST_RUN
    for directory, found in newest_runs(home):
        if found is None:
            continue
        if found.started_at < oldest:
            return
        if found.end is None:
            run = read_run(directory)
            if run_state(run, directory) is RunState.RUNNING:
                yield run, directory


def _values(
    run: Run, directory: Path, node: Node, about: Mapping[str, str]
) -> Iterator[tuple[str, dict[str, str], str]]:
    """Yield name, labels and value of each series of a node."""
    newest = samples_of_node(directory, node.name, 1)
    if not newest:
        return
    taken_at = node.started_at + timedelta(seconds=newest[-1].elapsed_s)
    age_s = (datetime.now(timezone.utc) - taken_at).total_seconds()
    if age_s > _STALE_S + 2 * run.period_s:
        return
    rows = {row["device"]: row for row in newest[-1].rows}
    for kind in ("node", "gpu"):
        for id_, labels in labels_of(node, kind):
            row = rows.get(id_)
            if row is None:
                continue
            yield JOB_INFO, {**labels, **about}, "1"
            if size := memory_labels(node, id_):
                yield OWN_MEMORY, size[0], str(size[1])
            for metric in METRICS:
                if metric.scope != kind or metric.name not in row:
                    continue
                value = row[metric.name]
                if metric.per_core:
                    for core, share in zip(node.cores, value, strict=False):
                        yield own_name(metric), {**labels, "core": str(core)}, repr(share)
                else:
                    yield own_name(metric), labels, repr(value)
