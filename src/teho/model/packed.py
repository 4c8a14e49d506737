"""The result of `teho pack`: many small files in a few tar archives."""

from __future__ import annotations

import msgspec

__all__ = ["SCHEMA", "Packed"]

SCHEMA = "teho.pack/1"
"""Name and version of the JSON form; an incompatible change raises the number."""


class Packed(msgspec.Struct, frozen=True, kw_only=True):
    """A folder that was packed."""

    schema: str = SCHEMA
    source: str
    folder: str
    """The folder with the archives."""
    samples: int
    """Files with the same name up to the first dot are one sample."""
    members: int
    """Number of files in the archives."""
    content_bytes: int
    """Size of these files, without the archives' own headers."""
    shards: int
    """Number of archives."""
    kept_samples: int = 0
    """Samples that an earlier, interrupted call had packed."""
    elapsed_s: float
    """Time of this call."""
