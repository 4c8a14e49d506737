"""The comment at the top of a file that `teho clusters discover` writes."""

from __future__ import annotations

import textwrap
from datetime import date

from teho.model.cluster import Cluster

__all__ = ["header_lines"]

_WIDTH = 96


def header_lines(cluster: Cluster, today: date) -> list[str]:
    """Return the comment at the top of a discovered file, in lines."""
    when = today.isoformat()
    sentences = (
        f"{cluster.title}, as its scheduler described it on {when} to `teho clusters discover`.",
        "Add missing facts from the site with their sources. Run `teho clusters check FILE`.",
        "In each partition, `unknown` names the facts that are not known. Also not known:",
    )
    lines = [line for text in sentences for line in textwrap.wrap(text, _WIDTH)]
    for note in cluster.notes:
        lines += textwrap.wrap(note, _WIDTH, initial_indent="- ", subsequent_indent="  ")
    return lines
