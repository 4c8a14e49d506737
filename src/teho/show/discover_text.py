"""What `teho clusters discover` says: the head of a file, and a table of differences."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from datetime import date
from itertools import groupby

from rich.cells import cell_len
from rich.text import Text

from teho.clusters.differences import Difference
from teho.model.cluster import Cluster
from teho.show.cells import plain
from teho.show.text.flow import flow, printed, words

__all__ = ["header_lines", "render_differences"]

_WIDTH = 96
_HEADS = ("place", "fact", "catalogue", "here")


def header_lines(cluster: Cluster, today: date) -> list[str]:
    """Return the comment at the top of a discovered file, in lines."""
    when = today.isoformat()
    sentences = (
        f"{cluster.title}, as its scheduler described it on {when} to `teho clusters discover`.",
        "Complete it from the site's pages, with sources; `teho clusters check FILE` checks it.",
        "Of each partition, `unknown` names what could not be learnt. Beyond that:",
    )
    lines = [line for text in sentences for line in textwrap.wrap(text, _WIDTH)]
    for note in cluster.notes:
        lines += textwrap.wrap(note, _WIDTH, initial_indent="- ", subsequent_indent="  ")
    return lines


def render_differences(
    known: Cluster, live: Cluster, items: Sequence[Difference], *, width: int, color: bool
) -> str:
    """Render where the catalogue and the live cluster differ; ends in a line break."""
    asked = next(iter(live.sources.values())).document
    if not items:
        head = words(f"{known.title}: all that {asked} reports is as the catalogue says.")
        return printed([flow(head, width, Text(), style="bold")], width=width, color=color)
    count = "1 fact differs" if len(items) == 1 else f"{len(items)} facts differ"
    head = words(f"{known.title}: {count} between the catalogue and {asked}")
    hint = words(
        "Facts that the scheduler does not report are not compared. `teho clusters show "
        f"{known.name} --path` names the catalogue's file."
    )
    blocks = [
        flow(head, width, Text(), style="bold"),
        _table(items, width),
        flow(hint, width, Text()),
    ]
    return printed(blocks, width=width, color=color)


def _table(items: Sequence[Difference], width: int) -> list[Text]:
    rows = [(item.place, item.fact, item.catalogue, item.live) for item in items]
    widths = [max(map(cell_len, cells)) for cells in zip(_HEADS, *rows, strict=True)]
    lines = [_row(_HEADS, widths, "dim")]
    pairs = zip(items, rows, strict=True)
    for source, members in groupby(pairs, key=lambda pair: pair[0].source):
        lines += [_row(row, widths, "") for _, row in members]
        if source:
            lines += flow(words(f"Source: {source}"), width, Text("    "), style="dim")
    return lines


def _row(cells: Sequence[str], widths: Sequence[int], style: str) -> Text:
    padded = [
        cell + " " * (size - cell_len(cell)) for cell, size in zip(cells, widths, strict=True)
    ]
    return Text("  " + plain("  ".join(padded)).rstrip(), style)
