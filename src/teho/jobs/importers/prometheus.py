"""Answers of Prometheus to `/api/v1/query_range`, of the exporters in `exporters.toml`.

The lines of `/api/v1/export` of VictoriaMetrics are also read: they have the times in ms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from teho.errors import InputError
from teho.jobs.importer import Importer
from teho.jobs.json_stream import pieces_of
from teho.jobs.log import Log, Source
from teho.jobs.series import Series, jobs_of, read_series

__all__ = ["IMPORTER"]

_TOOL = "Prometheus"


class Prometheus(Importer):
    """One or more answers, each with the series of a query."""

    title = "Prometheus"
    written_by = "Prometheus, curl …/api/v1/query_range?query=…"
    place = 5

    def recognises(self, source: Source) -> bool:
        """Return whether the file begins like an answer of the HTTP API."""
        begin = source.text[:2_000]
        is_export = begin.startswith('{"metric":') and '"timestamps"' in source.text
        return is_export or ('"resultType"' in begin and '"data"' in begin)

    def read(self, source: Source) -> Log:
        """Read all series that Teho knows.

        Raises:
            InputError: Prometheus answered with an error, without series over time, or with the
                series of several jobs.
        """
        log = Log(tool=_TOOL, is_whole=True)
        try:
            every = list(_series(source, log))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"{source.path} is not what Prometheus answers: {error}",
                "the JSON of /api/v1/query_range",
                "repeat the query",
            ) from error
        jobs = jobs_of(every)
        if len(jobs) > 1:
            raise InputError(
                f"{source.path} has the series of {len(jobs)} jobs: {', '.join(sorted(jobs)[:5])}",
                "the series of one job",
                'add the job to the query, such as `{jobid="4711"}`',
            )
        read_series(every, log)
        return log


def _series(source: Source, log: Log) -> Iterator[Series]:
    """Yield the series of all answers in a file."""
    for piece in pieces_of(source.text):
        if not isinstance(piece.value, dict):
            log.skipped_lines += 1
            continue
        if "timestamps" in piece.value:
            times_s = [at_ms / 1000 for at_ms in piece.value["timestamps"]]
            pairs = zip(times_s, piece.value.get("values", []), strict=False)
            yield Series(_labels(piece.value), list(_pairs(pairs)))
            continue
        if piece.value.get("status") == "error":
            raise InputError(
                f"{source.path} has an error of Prometheus: {piece.value.get('error', '')}",
                "an answer with data",
                "repeat the query",
            )
        data = piece.value.get("data")
        if not isinstance(data, dict) or data.get("resultType") != "matrix":
            raise InputError(
                f"{source.path} has values of one moment",
                "values over time, from /api/v1/query_range",
                "ask with start, end and step",
            )
        for one in data.get("result", []):
            yield Series(_labels(one), list(_pairs(one.get("values", []))))


def _labels(one: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(label) for name, label in one.get("metric", {}).items()}


def _pairs(values: Any) -> Iterator[tuple[float, float]]:
    for at_s, value in values:
        try:
            yield float(at_s), float(value)
        except (TypeError, ValueError):
            continue


IMPORTER = Prometheus
