"""The result of `teho bench` as a document: the verdict, the figures, and notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from teho.bench.example import BenchExample
from teho.bench.examples import LIBRARIES
from teho.bench.verdict import bench_verdict, severity_of
from teho.model.bench import Bench, Measured
from teho.model.document import Document, Fact, Item, Table
from teho.show.build.bench_tables import tables_of
from teho.show.build.layout import document, listing
from teho.version import __version__

__all__ = ["bench_document", "examples_document"]


def bench_document(bench: Bench) -> Document:
    """Lay out the results of one example or of several."""
    severity, verdict = bench_verdict(bench)
    several = len(bench.results) > 1
    items = [
        Item(lead=one.title, text=one.verdict, severity=severity_of(one))
        for one in bench.results
        if several
    ]
    notes = [
        f"{measured.title}: {note}" if several else note
        for measured in bench.results
        for note in measured.notes
    ]
    return document(
        title=", ".join(measured.title for measured in bench.results),
        verdict=verdict,
        verdict_severity=severity,
        facts=tuple(_facts(bench)),
        tables=tuple(table for one in bench.results for table in _tables(one, several=several)),
        lists=(listing("examples", "Examples", items, "first"),),
        notes=(*notes, *bench.notes),
        teho_version=bench.teho_version or __version__,
    )


def examples_document(examples: Iterable[BenchExample]) -> Document:
    """Lay out the list of examples."""
    items = [Item(lead=example.name, text=example.shows) for example in examples]
    return document(
        title="teho bench",
        verdict=f"{len(items)} examples compare a CPU with a GPU.",
        verdict_severity="remark",
        lists=(listing("examples", "Examples", items),),
        commands=("`teho bench NAME --quick` takes less than a minute for each example.",),
    )


def _facts(bench: Bench) -> Iterator[Fact]:
    """Yield the libraries, the versions of Python, the devices and the time."""
    there = [one for result in bench.results for one in result.participants if one.version]
    for name, values in (
        ("library", [f"{LIBRARIES[one.library]} {one.version}" for one in there]),
        ("python", [f"Python {one.python}" for one in there]),
        ("device", [*(one.device for one in there), bench.cpu, *bench.gpus]),
    ):
        yield from (Fact(name, "", value) for value in dict.fromkeys(values) if value)
    yield Fact("elapsed_s", "Time", sum(one.elapsed_s for one in bench.results), "s")
    yield Fact("at", "Measured at", bench.at, aside=True)


def _tables(measured: Measured, *, several: bool) -> Iterator[Table]:
    for table in tables_of(measured):
        title = f"{measured.title}: {table.title}" if several else table.title
        yield msgspec.structs.replace(table, title=title)
