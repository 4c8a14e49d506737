"""The newest sample of a node, which its recorder sends to viewers while the run goes on."""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = ["Lease", "LiveSample"]


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """The file of a viewer that watches a run. Recorders send samples while it is renewed."""

    number: int
    """Counts the renewals. A lease whose number stays the same has expired."""
    addresses: tuple[str, ...] = ()
    """Where the viewer listens, `HOST:PORT`; empty: it only reads files."""
    token: str = ""
    """A recorder sends it first: only the user can read this file."""


class LiveSample(msgspec.Struct, frozen=True, kw_only=True):
    """One sample of all devices of a node."""

    node: str
    elapsed_s: float
    """Seconds after the start of the program."""
    rows: list[dict[str, Any]]
    """A row for each device with the columns of a recording, without those that all rows share:
    `kind`, `device`, `span_s` and the metrics. A metric without a value is not there."""
