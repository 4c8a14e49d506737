"""Makes recordings out of imported logs, with the same files as `teho run`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec

from teho.errors import InputError
from teho.jobs.log import NODE, GpuFacts, Log, NodeFacts, Sample, Source
from teho.jobs.timeline import NodeRounds, distinct, node_rounds, separate_runs, with_times
from teho.jobs.writers import writer_count
from teho.model.allocation import Allocation
from teho.model.device import Device, Reading, Readings
from teho.model.metric import METRICS, METRICS_BY_NAME
from teho.model.missing import Missing, Reason
from teho.model.run import FORMAT_VERSION, Absence, End, Import, Node, Run
from teho.observe.sampler import SignalSampler
from teho.store.index import list_runs, remove_run
from teho.store.journal import Journal, Row
from teho.store.layout import (
    create_run_directory,
    new_run_id,
    node_file,
    replace_file,
    run_file,
    runs_directory,
    safe_name,
)
from teho.store.pack import seal
from teho.store.schema import max_column
from teho.units import counted
from teho.version import __version__

__all__ = ["UNKNOWN_HOST", "ImportWish", "make_recordings"]

UNKNOWN_HOST = "unknown-host"
"""Name of a node whose host name is not in the log."""
_COUNTERS = frozenset(metric.name for metric in METRICS if metric.kind == "counter")
_ROWS_PER_FLUSH = 2_000
_NAMED = 8
"""Maximum number of unused columns that a note names."""


class ImportWish(NamedTuple):
    """What the user gave in addition to the files."""

    name: str = ""
    host: str = ""
    """Host name of all samples; empty: as in the files."""
    every_s: float | None = None
    """Time between two samples of a GPU, for logs without times."""
    began_s: float | None = None
    """Start of the program in s since 1970, if another source knows it."""


class _Facts(NamedTuple):
    """What all logs say about their GPUs and nodes, and the sentences for the report."""

    gpus: dict[tuple[str, str], GpuFacts]
    nodes: dict[str, NodeFacts]
    tools: tuple[str, ...]
    files: tuple[str, ...]
    notes: dict[str, tuple[str, ...]]
    """By node."""
    peaks: dict[tuple[str, str], dict[str, float]]
    """By node and key of the GPU or `NODE`, of metrics without samples."""
    sampled_every_s: float | None = None
    """Time between the values of which the only sample is the mean."""
    means: tuple[str, ...] = ()
    """Metrics of which the logs have only one mean for the whole run."""
    digest: str = ""


def make_recordings(logs: Sequence[tuple[Source, Log]], wish: ImportWish, home: Path) -> list[Path]:
    """Write one recording for each run in the logs, and return their directories.

    Samples of several files are one run if they overlap in time. A long gap separates two runs. If
    the same files were imported before in the same way, their recordings are returned.

    Args:
        logs: the files and their content.
        wish: what the user gave in addition to them.
        home: the directory of all recordings.

    Raises:
        InputError: the logs have no samples, or do not say when the samples were taken.
        OSError: a recording cannot be written.
    """
    if len(logs) > 1 and (whole := next((log for _, log in logs if log.covers_s), None)):
        raise InputError(
            f"{len(logs)} files, one of which is a summary of {whole.tool}",
            "a summary as the only file",
            "import the summary and the logs one after the other",
        )
    digest = _digest(logs, wish)
    if runs_directory(home).is_dir():
        before = [path for path, run in list_runs(home) if run and _is_from(run, digest)]
        if before:
            return before
    first = logs[0][1]
    facts = _Facts({}, {}, *_origin(logs), {}, {}, first.sampled_every_s, first.means, digest)
    samples = [sample for source, log in logs for sample in _taken(source, log, wish, facts)]
    samples.sort(key=lambda sample: sample.at_s or 0.0)
    nodes = node_rounds(samples)
    if first.covers_s:
        nodes = [node._replace(period_s=first.covers_s) for node in nodes]
    is_whole = any(log.is_whole for _, log in logs)
    runs = separate_runs(nodes, is_whole=is_whole)
    written: list[Path] = []
    try:
        written.extend(_write(nodes, facts, wish, home) for nodes in runs)
    except BaseException:
        for directory in written:
            remove_run(directory)
        raise
    return written


def _digest(logs: Sequence[tuple[Source, Log]], wish: ImportWish) -> str:
    """Return what is the same only for the same files, options and version of Teho."""
    parts = [(source.digest, source.columns, source.gpu_count, log.tool) for source, log in logs]
    return sha256(repr((__version__, parts, wish)).encode()).hexdigest()


def _is_from(run: Run, digest: str) -> bool:
    return run.imported is not None and run.imported.digest == digest


def _taken(source: Source, log: Log, wish: ImportWish, facts: _Facts) -> list[Sample]:
    """Return the samples of one file, with their times and host names; add its facts to `facts`."""
    own = distinct(with_times(log, source, wish.every_s), source, log.notes)
    if not own:
        raise InputError(
            f"{source.path} has no samples of {log.tool}", "at least one row with values"
        )
    log.samples = []
    _refuse_mixed(own, log, source)
    names = _host_names(log, own, source, wish, len(facts.files))
    for (host, key), gpu in log.gpus.items():
        if host in names:
            facts.gpus[names[host], key] = gpu
    for host, node in log.nodes.items():
        facts.nodes[names.get(host, host)] = node
    for (host, key), peaks in log.peaks.items():
        facts.peaks[names.get(host, host), key] = peaks
    notes = tuple(_notes(log, source, own[0].at_s or 0.0))
    for name in dict.fromkeys(names.values()):
        facts.notes[name] = (*facts.notes.get(name, ()), *notes)
    return [
        sample if (name := names[sample.node]) == sample.node else sample._replace(node=name)
        for sample in own
    ]


def _refuse_mixed(samples: Sequence[Sample], log: Log, source: Source) -> None:
    """Raise an error if several programs wrote the rows of one index.

    A UUID or a bus id shows which GPU a row is from.
    """
    times: dict[tuple[str, str], list[float]] = {}
    for sample in samples:
        times.setdefault((sample.node, sample.device), []).append(sample.at_s or 0.0)
    for key, of_gpu in times.items():
        gpu = log.gpus.get(key)
        count = writer_count(of_gpu) if gpu and not (gpu.uuid or gpu.pci_bus_id) else 1
        if count > 1:
            raise InputError(
                f"{source.path}: {count} programs wrote the rows of GPU {key[1]} at the same time",
                "the rows of one machine, or a column hostname or uuid",
                "give one file for each machine",
            )


def _origin(logs: Sequence[tuple[Source, Log]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    tools = dict.fromkeys(log.tool for _, log in logs)
    return tuple(tools), tuple(source.path.name for source, _ in logs)


def _host_names(
    log: Log, samples: Sequence[Sample], source: Source, wish: ImportWish, files: int
) -> dict[str, str]:
    """Return the name of each node of a file, in the files of the recording."""
    hosts = dict.fromkeys(sample.node for sample in samples)
    if wish.host and len(hosts) > 1:
        raise InputError(
            f"--host {wish.host}: {source.path} has {len(hosts)} hosts: {', '.join(hosts)}",
            "a log of one host",
            "leave out --host",
        )
    names: dict[str, str] = {}
    for host in hosts:
        name = safe_name(wish.host or host)
        if not name and files > 1:
            # Users who log several nodes write one file for each.
            name = safe_name(source.path.name.partition(".")[0])
            log.notes.append(
                f"The log does not name its host. Teho uses the name of the file, {name}."
            )
        names[host] = name or UNKNOWN_HOST
    return names


def _notes(log: Log, source: Source, first_s: float) -> Iterator[str]:
    has_cores = any(node.core_count for node in log.nodes.values())
    yield (
        f"This recording was imported from {source.path.name}, a log of {log.tool}. The log does "
        f"not contain the command{'' if has_cores else ', the cores'} or the exit code of the "
        "program."
    )
    if log.has_local_times:
        zone = datetime.fromtimestamp(first_s).astimezone().tzname()
        yield (
            "The times in the log have no time zone. Teho assumes the time zone of this machine, "
            f"{zone}."
        )
    yield from log.notes
    if log.skipped_lines:
        yield (
            f"{counted(log.skipped_lines, 'line')} of {source.path.name} "
            f"{'is' if log.skipped_lines == 1 else 'are'} not from {log.tool} and "
            f"{'was' if log.skipped_lines == 1 else 'were'} skipped."
        )
    if log.unused:
        named = ", ".join(list(log.unused)[:_NAMED])
        more = len(log.unused) - _NAMED
        yield f"Teho does not use these columns: {named}{f' and {more} more' if more > 0 else ''}."


def _write(nodes: Sequence[NodeRounds], facts: _Facts, wish: ImportWish, home: Path) -> Path:
    """Write one recording; if this fails, the recording is deleted."""
    periods = [node.period_s for node in nodes if node.period_s]
    period_s = min(periods, default=1.0)
    several = any(len(node.rounds) > 1 for node in nodes)
    is_counted = wish.began_s is None and several and _has_counters(nodes)
    first_s = min(node.rounds[0].at_s for node in nodes)
    last_s = max(node.rounds[-1].at_s for node in nodes)
    # A sample describes the time before it. With counters, the first sample is their zero.
    begin_s = first_s - period_s if periods and not is_counted else first_s
    begin_s = begin_s if wish.began_s is None else wish.began_s
    started_at = datetime.fromtimestamp(begin_s, timezone.utc)
    hosts = [node.name for node in nodes if node.name != UNKNOWN_HOST]
    run = Run(
        format=FORMAT_VERSION,
        id=new_run_id(started_at, wish.name or facts.files[0].partition(".")[0]),
        name=wish.name,
        command=(),
        started_at=started_at,
        host=hosts[0] if hosts else "",
        period_s=period_s,
        versions={"teho": __version__},
        imported=Import(
            tools=facts.tools,
            files=facts.files,
            means=facts.means,
            at=datetime.now(timezone.utc),
            digest=facts.digest,
        ),
    )
    directory = create_run_directory(home, run.id, msgspec.json.encode(run))
    try:
        for node in nodes:
            described = _write_node(directory, node, run, facts, is_counted=is_counted)
            replace_file(node_file(directory, node.name), msgspec.json.encode(described))
        end = End(
            at=datetime.fromtimestamp(last_s, timezone.utc), elapsed_s=round(last_s - begin_s, 6)
        )
        ended = msgspec.structs.replace(run, end=end)
        replace_file(run_file(directory), msgspec.json.encode(ended))
    except BaseException:
        remove_run(directory)
        raise
    return directory


def _has_counters(nodes: Sequence[NodeRounds]) -> bool:
    return any(
        not isinstance(value, Missing)
        for node in nodes
        for one in node.rounds
        for sample in one.samples.values()
        if not _COUNTERS.isdisjoint(sample.metrics)
        for name, value in zip(sample.metrics, sample.cells, strict=True)
        if name in _COUNTERS
    )


def _write_node(
    directory: Path, node: NodeRounds, run: Run, facts: _Facts, *, is_counted: bool
) -> Node:
    """Write the rows of a node, and return its description."""
    devices = _devices(node, facts)
    begin_s = run.started_at.timestamp()
    period_s = node.period_s or run.period_s
    sampler = SignalSampler(node.name, run.started_at, period_s)
    journal = Journal(directory, node.name)
    empty: Readings = {NODE: {}, **{one.id: {} for one in devices.values()}}
    given: dict[str, set[str]] = {key: set() for key in empty}
    first_s = node.rounds[0].at_s - begin_s
    rows, last = 0, list[Row]()
    sampler.begin(empty, first_s if is_counted else max(0.0, first_s - period_s))
    for number, one in enumerate(node.rounds):
        readings = dict(empty)
        for key, sample in one.samples.items():
            id_ = NODE if key == NODE else devices[key].id
            values: dict[str, Reading] = dict(sample.values)
            readings[id_] = values
            known = (name for name, value in values.items() if not isinstance(value, Missing))
            given[id_].update(known)
        if is_counted and number == 0:
            sampler.begin(readings, first_s)
            continue
        journal.append(last)
        last = sampler.add(readings, one.at_s - begin_s)
        rows += len(last)
        if rows >= _ROWS_PER_FLUSH:
            journal.flush()
            rows = 0
    last += sampler.finish(node.rounds[-1].at_s - begin_s)
    _add_peaks(last, node, devices, facts)
    journal.append(last)
    journal.close()
    if journal.problem or journal.lost_rows:
        raise OSError(journal.problem or f"{directory}: not all rows could be written")
    seal(directory, node.name)
    own = facts.nodes.get(node.name, NodeFacts())
    return Node(
        name=node.name,
        started_at=run.started_at,
        period_s=facts.sampled_every_s or period_s,
        allocation=Allocation(
            scheduler=own.scheduler or None,
            job_id=own.job_id or None,
            cores_asked=own.core_count,
            gpus_held=own.gpu_count,
            memory_limit_bytes=own.memory_limit_bytes,
            memory_limit_source="scheduler" if own.memory_limit_bytes else "",
        ),
        devices=tuple(devices.values()),
        absences=tuple(_absences(sampler, given, facts)),
        notes=facts.notes.get(node.name, ()),
        sealed=True,
    )


def _add_peaks(
    rows: list[Row], node: NodeRounds, devices: Mapping[str, Device], facts: _Facts
) -> None:
    """Add peaks to the last rows: as a maximum without a mean."""
    keys = {NODE: NODE, **{device.id: key for key, device in devices.items()}}
    for row in rows:
        for metric, peak in facts.peaks.get((node.name, keys[row["device"]]), {}).items():
            is_whole = METRICS_BY_NAME[metric].integer
            row[max_column(metric)] = round(peak) if is_whole else peak


def _devices(node: NodeRounds, facts: _Facts) -> dict[str, Device]:
    """Return the GPUs of a node by their keys in the log, in the order of their indices."""
    keys = dict.fromkeys(key for one in node.rounds for key in one.samples if key != NODE)
    known = {key: facts.gpus.get((node.name, key), GpuFacts()) for key in keys}
    ordered = sorted(
        known.items(), key=lambda one: (one[1].index is None, one[1].index or 0, one[0])
    )
    found: dict[str, Device] = {}
    for position, (key, gpu) in enumerate(ordered):
        index = position if gpu.index is None else gpu.index
        found[key] = Device(
            id=gpu.uuid or f"gpu-{safe_name(key) or position}",
            index=index,
            name=gpu.name,
            vendor=gpu.vendor,
            memory_bytes=gpu.memory_bytes,
            pci_bus_id=gpu.pci_bus_id or None,
            power_limit_w=gpu.power_limit_w,
            architecture=gpu.architecture,
        )
    return found


def _absences(
    sampler: SignalSampler, given: Mapping[str, set[str]], facts: _Facts
) -> Iterator[Absence]:
    """Yield why each metric is missing that a device never had."""
    tools = " and ".join(facts.tools)
    for id_, names in given.items():
        scope = "node" if id_ == NODE else "gpu"
        for metric in METRICS:
            if metric.scope != scope or metric.name in names:
                continue
            known = sampler.absences.get((id_, metric.name))
            why = f"the log of {tools} does not contain the necessary data"
            not_logged = Missing(Reason.UNRECORDED, why)
            yield known or Absence(device=id_, metric=metric.name, missing=not_logged, since_s=0.0)
