"""Asks a Prometheus-compatible store what it knows about a job.

The samples themselves are requested, not values at regular times: their times and gaps are then the
same as in the store. Only for a very large job, the store picks a value at regular times.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec

from teho.errors import StoreBusyError, StoreError
from teho.jobs.as_run import node_names
from teho.jobs.exporters import Exporter, exporters
from teho.jobs.http import Store, request
from teho.jobs.log import Log
from teho.jobs.series import Series, host_of, key_of, read_series
from teho.model.accounted import AccountedJob
from teho.patterns import lazy_pattern
from teho.units import counted, format_duration

__all__ = ["Monitored", "ask_store"]

_SLACK_S = 600.0
"""Series that name the job are also requested this long before its start and after its end: the
clocks of a node and of the scheduler may differ."""
_HOLE_S = 330.0
"""A series that says which job has a GPU may lack samples. A longer gap ends the job: Prometheus
takes a series as ended after 5 min."""
_ROWS_MOST = 400_000
"""Rows of nodes and GPUs; with more, values are picked at regular times."""
_SAMPLING_S = 15.0
"""Shortest usual time between two samples, to estimate the rows before they are known."""
_ROWS_PER_ANSWER = 60_000
_HOSTS_PER_QUERY = 200
"""VictoriaMetrics accepts queries of 16 KiB."""
_LEAST_STEP_S = 60.0
_TRIES = 4
_PAUSE_S = 0.5
_PATIENCE_S = 10.0
"""A store that hangs for longer is not asked again: a user waits for the report."""
_HOST = lazy_pattern(r"[\w.-]+", re.ASCII)


class Monitored(NamedTuple):
    """What a store knows about a job."""

    log: Log
    """Without samples: the store has no series of the job."""
    exporters: tuple[str, ...]
    """Titles of the exporters."""
    notes: tuple[str, ...]
    """Sentences for the report."""


class _Answer(msgspec.Struct):
    """An answer of the HTTP API."""

    status: str
    data: _Data | None = None
    error: str = ""
    is_partial: bool = msgspec.field(default=False, name="isPartial")
    """VictoriaMetrics: a part of the store did not answer."""


class _Data(msgspec.Struct):
    result_type: str = msgspec.field(name="resultType")
    result: list[_Result]


class _Result(msgspec.Struct):
    metric: dict[str, str]
    values: list[tuple[float, str]] = []


class _Range(NamedTuple):
    """The requested time, in s since 1970."""

    begin_s: float
    end_s: float
    rows: float
    """Expected number of rows."""

    @property
    def step_s(self) -> float | None:
        """Time between two values; None: all values."""
        if self.rows <= _ROWS_MOST:
            return None
        step_s = _SAMPLING_S * self.rows / _ROWS_MOST
        return max(_LEAST_STEP_S, math.ceil(step_s / _LEAST_STEP_S) * _LEAST_STEP_S)


def ask_store(store: Store, job: AccountedJob) -> Monitored:
    """Return the samples of a job that a store has.

    Args:
        store: the store.
        job: a job that has started.

    Raises:
        StoreError: the store does not answer, or refuses.
    """
    if job.started_at is None:
        return Monitored(Log(tool=store.host), (), ())
    ended_at = job.ended_at or datetime.now(timezone.utc)
    begin_s, end_s = job.started_at.timestamp(), ended_at.timestamp()
    hosts = [name.partition(".")[0] for name in node_names(job) if _HOST.fullmatch(name)]
    places = (job.gpus or 0) + max(len(hosts), 1)
    span = _Range(begin_s, end_s, places * max(end_s - begin_s, 1.0) / _SAMPLING_S)
    query = _Query(store, job, hosts, span)
    found: list[Series] = []
    titles: list[str] = []
    for exporter in exporters().values():
        own = query.series_of(exporter)
        if own:
            found.extend(own)
            titles.append(exporter.title)
    log = Log(tool=f"the store {store.host}", is_whole=True)
    read_series(_of_cluster(found, job, query.notes), log)
    _only_one_name(log)
    lacking = sorted(set(hosts) - {sample.node for sample in log.samples})
    if log.samples and lacking:
        query.notes.append(f"The store has no samples of {', '.join(lacking)}.")
    if span.step_s and log.samples:
        step = format_duration(span.step_s)
        query.notes.append(
            f"The job is very large: Teho read one value of each series every {step}. Shorter "
            "changes are not in this report."
        )
    return Monitored(log, tuple(titles), (*query.notes, *log.notes))


def _of_cluster(found: list[Series], job: AccountedJob, notes: list[str]) -> list[Series]:
    """Return the series of the job's cluster, if the store has several clusters."""
    names = {series.labels.get("cluster", "") for series in found} - {""}
    if len(names) < 2:
        return found
    own = [series for series in found if series.labels.get("cluster") == job.cluster]
    if not own:
        notes.append(
            f"The store has series of nodes with these names on {counted(len(names), 'cluster')}: "
            f"{', '.join(sorted(names))}. Teho did not use them: the accounting "
            f"{f'names the cluster {job.cluster}' if job.cluster else 'does not name the cluster'}."
        )
    return own


def _only_one_name(log: Log) -> None:
    """Leave out the GPUs without a UUID, if the same node also has GPUs with a UUID.

    They are the same GPUs, from another exporter.
    """
    named = {host for (host, _), gpu in log.gpus.items() if gpu.uuid}
    out = {key for key, gpu in log.gpus.items() if key[0] in named and not gpu.uuid}
    log.samples = [one for one in log.samples if (one.node, one.device) not in out]
    for key in out:
        del log.gpus[key]


class _Query:
    """The questions about one job."""

    def __init__(self, store: Store, job: AccountedJob, hosts: Sequence[str], span: _Range) -> None:
        self._store = store
        self._job = job
        self._id = job.raw_id or job.id
        self._hosts = hosts
        self._span = span
        self.notes: list[str] = []
        self._has_gpus = False

    def series_of(self, exporter: Exporter) -> list[Series]:
        """Return the series of one exporter during the job."""
        found = self._owned(exporter) if exporter.owner else self._labelled(exporter)
        if found and exporter.gpu:
            self._has_gpus = True
        return found

    def _labelled(self, exporter: Exporter) -> list[Series]:
        """Return the series that name the job, or else all GPUs of nodes that only this job has."""
        found: list[Series] = []
        if exporter.job:
            matcher = f"{exporter.job}={_quoted(self._id)}"
            every = self._fetch(exporter.names, [matcher], self._wide())
            found = [series for series in every if self._is_here(series, exporter)]
        if found or not exporter.has_whole_nodes or self._has_gpus or not self._hosts:
            return found
        every = self._fetch_on_hosts(exporter.names, exporter, self._span)
        # On a node where the exporter names other jobs, an unnamed GPU has no job.
        with_jobs = {host_of(one, exporter.host) for one in every if one.labels.get(exporter.job)}
        unnamed = [one for one in every if host_of(one, exporter.host) not in with_jobs]
        return self._whole_nodes(unnamed, exporter)

    def _owned(self, exporter: Exporter) -> list[Series]:
        """Return the series of the nodes or GPUs that another series gives to the job."""
        owner = exporter.owner
        if owner is None or not self._hosts:
            return []
        wide = self._wide()
        if owner.job:
            owners = self._fetch([owner.metric], [f"{owner.job}={_quoted(self._id)}"], wide)
        else:
            owners = self._fetch_on_hosts([owner.metric], exporter, wide)
        times: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for series in owners:
            if not self._is_here(series, exporter):
                continue
            place = (host_of(series, exporter.host), key_of(series, exporter.gpu))
            spans = _spans(series, "" if owner.job else self._id)
            times.setdefault(place, []).extend(spans)
        if not times:
            return []
        every = self._fetch_on_hosts(exporter.names, exporter, wide)
        # A series of a whole node owns all its GPUs.
        found = [
            part
            for series in every
            if (part := _during(series, _times_of(series, exporter, times))).values
        ]
        has_gpus = any(key for _, key in times)
        return found if has_gpus else self._whole_nodes(found, exporter)

    def _whole_nodes(self, every: Sequence[Series], exporter: Exporter) -> list[Series]:
        """Return the series of nodes of which the job has all GPUs."""
        gpus: dict[str, set[str]] = {}
        for series in every:
            if key := key_of(series, exporter.gpu):
                gpus.setdefault(host_of(series, exporter.host), set()).add(key)
        if not self._job.gpus:
            return [one for one in every if not key_of(one, exporter.gpu)]
        each = self._job.gpus / max(len(self._hosts), 1)
        shared = sorted(host for host, keys in gpus.items() if len(keys) > each)
        if shared:
            self.notes.append(
                f"{exporter.title} has {counted(len(gpus[shared[0]]), 'GPU')} of {shared[0]}, and "
                f"does not say which of them this job had ({self._job.gpus} in all). Teho did "
                "not use their values."
            )
        return [one for one in every if host_of(one, exporter.host) not in shared]

    def _is_here(self, series: Series, exporter: Exporter) -> bool:
        """Return whether a series is of one of the job's nodes.

        Two clusters that share a store can use the same numbers for their jobs.
        """
        return not self._hosts or host_of(series, exporter.host) in self._hosts

    def _wide(self) -> _Range:
        begin_s, end_s, rows = self._span
        return _Range(begin_s - _SLACK_S, end_s + _SLACK_S, rows)

    def _fetch_on_hosts(
        self, names: Collection[str], exporter: Exporter, span: _Range
    ) -> list[Series]:
        for label in exporter.host:
            found: list[Series] = []
            for begin in range(0, len(self._hosts), _HOSTS_PER_QUERY):
                some = self._hosts[begin : begin + _HOSTS_PER_QUERY]
                every = "|".join(one.replace(".", "[.]") for one in some)
                # A selector anchors its pattern at both ends.
                found += self._fetch(names, [f'{label}=~"({every})([.:].*)?"'], span)
            if own := [series for series in found if self._is_here(series, exporter)]:
                return own
        return []

    def _fetch(self, names: Collection[str], matchers: Sequence[str], span: _Range) -> list[Series]:
        """Return the series with these names, in the order of the store."""
        selector = "{" + ",".join([f'__name__=~"{"|".join(names)}"', *matchers]) + "}"
        found: dict[frozenset[tuple[str, str]], Series] = {}
        for result in self._answers(selector, span):
            series = found.setdefault(frozenset(result.metric.items()), Series(result.metric, []))
            last_s = series.values[-1][0] if series.values else -math.inf
            series.values.extend(
                (at_s, value) for at_s, text in result.values
                if at_s > last_s and (value := _number(text)) is not None
            )  # fmt: skip
        return list(found.values())

    def _answers(self, selector: str, span: _Range) -> Iterator[_Result]:
        begin_s, end_s, rows = span
        if span.step_s:
            step_s = int(span.step_s)
            words = {"query": selector, "start": begin_s, "end": end_s, "step": step_s}
            yield from self._ask("/api/v1/query_range", words)
            return
        parts = max(1, math.ceil(rows / _ROWS_PER_ANSWER))
        length_s = (end_s - begin_s) / parts
        for number in range(parts):
            until_s = begin_s + (number + 1) * length_s
            # One second more: some versions leave out a value at the beginning of the range.
            query = f"{selector}[{math.ceil(length_s) + 1}s]"
            yield from self._ask("/api/v1/query", {"query": query, "time": round(until_s, 3)})

    def _ask(self, path: str, words: Mapping[str, object]) -> list[_Result]:
        body = urlencode(words).encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        end_s = time.monotonic() + _PATIENCE_S
        for number in range(_TRIES):
            try:
                content = request(self._store, path, body, headers)
                break
            except StoreBusyError:
                if number == _TRIES - 1 or time.monotonic() > end_s:
                    raise
                time.sleep(_PAUSE_S * 2**number)
        answer = _decoded(content, self._store)
        if answer.is_partial:
            note = "A part of the store did not answer. Some values may be missing."
            self.notes.extend([note] if note not in self.notes else [])
        return answer.data.result if answer.data else []


def _decoded(content: bytes, store: Store) -> _Answer:
    try:
        answer = msgspec.json.decode(content, type=_Answer)
    except ValueError as error:
        begin = content[:60].decode(errors="replace").strip()
        what = "a web page" if begin.startswith("<") else f"{begin!r}"
        raise StoreError(
            f"the store {store.host} answers with {what}",
            "the JSON of Prometheus' HTTP API",
            "check the address: it may need a path such as /prometheus, or the page is a login",
        ) from error
    if answer.status != "success":
        raise StoreError(f"the store {store.host} cannot answer: {answer.error}")
    return answer


def _number(text: str) -> float | None:
    """Return a value; None if it is not a number: such a sample is left out."""
    try:
        return float(text)
    except ValueError:
        return None


def _quoted(text: str) -> str:
    escaped = text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'"{escaped}"'


def _spans(series: Series, job_id: str) -> Iterator[tuple[float, float]]:
    """Yield the times in which a series gives its node or GPU to the job.

    Args:
        series: has the number of the job as its value, or only exists during the job.
        job_id: the number of the job; empty: the series itself is of the job.
    """
    begin_s = last_s = None
    for at_s, value in series.values:
        is_own = math.isfinite(value) and (not job_id or f"{value:.0f}" == job_id)
        if begin_s is not None and last_s is not None and (not is_own or at_s - last_s > _HOLE_S):
            yield begin_s, last_s
            begin_s = None
        if is_own:
            begin_s, last_s = at_s if begin_s is None else begin_s, at_s
    if begin_s is not None and last_s is not None:
        yield begin_s, last_s


def _times_of(
    series: Series,
    exporter: Exporter,
    times: Mapping[tuple[str, str], Sequence[tuple[float, float]]],
) -> Sequence[tuple[float, float]]:
    """Return when a series is of the job. If no GPU has an owner, the node's owner has all GPUs."""
    has_gpus = any(key for _, key in times)
    key = key_of(series, exporter.gpu) if has_gpus else ""
    return times.get((host_of(series, exporter.host), key), ())


def _during(series: Series, spans: Sequence[tuple[float, float]]) -> Series:
    values = [
        pair for pair in series.values if any(begin <= pair[0] <= end for begin, end in spans)
    ]
    return series._replace(values=values)
