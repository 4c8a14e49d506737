"""The result of `teho tune --find batch-size` as a document."""

from __future__ import annotations

import msgspec

from teho.model.batch_sizes import BatchSizes, BatchTry
from teho.model.document import Cell, Document, Item, Table
from teho.model.tuned import Change
from teho.show.build.layout import column, document, listing, table, three_digits
from teho.show.build.tune import change_item

__all__ = ["batch_sizes_document"]

_ENDED = {
    "fits": "fits",
    "out_of_memory": "out of memory",
    "dataset": "dataset too small",
    "failed": "failed",
    "too_slow": "too slow",
}


def batch_sizes_document(found: BatchSizes) -> Document:
    """Lay out the largest and the fastest batch, and all tries."""
    is_found = found.outcome == "found" and found.largest is not None
    return document(
        title="teho tune --find batch-size",
        verdict=found.verdict,
        verdict_severity="good" if is_found else "unknown",
        tables=(_tried(found),),
        lists=(
            listing("changes", "Change", map(_change, found.changes)),
            listing("out", "Why", map(_why, filter(lambda one: one.why, found.tries))),
        ),
        notes=found.notes,
    )


def _why(one: BatchTry) -> Item:
    lead = f"batch_size={one.batch_size}"
    if one.ended == "fits":
        return Item(lead=lead, text=one.why, severity="unknown")
    return Item(lead=lead, text=one.why, severity="critical")


def _change(change: Change) -> Item:
    item = change_item(change)
    return msgspec.structs.replace(item, code=(f"{change.set_to}  # {change.remark}",), details=())


def _tried(found: BatchSizes) -> Table:
    rates = [one.samples_per_s for one in found.tries if one.samples_per_s]
    return table(
        "tried",
        "Tried",
        sorted(found.tries, key=lambda one: one.batch_size),
        column("batch_size", "batch size", lambda one: float(one.batch_size), decimals=0),
        column("ended", "result", lambda one: _result(one, found)),
        column("rate", "samples/s", lambda one: one.samples_per_s, decimals=three_digits(rates)),
        column("gpu", "program", lambda one: one.memory.gpu_bytes, unit="bytes", band="GPU memory"),
        column("gpu_used", "all programs", lambda one: one.memory.gpu_used_bytes, unit="bytes",
               band="GPU memory"),
        column("host", "host memory", lambda one: one.memory.host_bytes, unit="bytes"),
        only_known=True,
        note="Each value of memory is the peak of a run. The peak is not known for runs that "
        "failed.",
    )  # fmt: skip


def _result(one: BatchTry, found: BatchSizes) -> Cell:
    own = ", unchanged" if one is found.tries[0] else ""
    return f"{_ENDED[one.ended]}{own}"
