"""A program that is recorded while a test watches it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from support import TEHO, wait_for

__all__ = ["recorded", "rows_of"]

LONG_ENOUGH = ["sleep", "120"]


@contextmanager
def recorded(
    home: Path,
    *options: str,
    environment: dict[str, str] | None = None,
    program: Sequence[str] = LONG_ENOUGH,
) -> Iterator[None]:
    """Record a program that waits, from its first rows on disk until the block ends."""
    command = [*TEHO, "run", "-q", "--every", "200ms", *options, "--", *program]
    known = set(home.glob("runs/[!.]*"))
    process = subprocess.Popen(command, env={**os.environ, **(environment or {})})
    try:
        wait_for(
            lambda: any(list(run.glob("live/*")) for run in set(home.glob("runs/[!.]*")) - known)
        )
        yield
    finally:
        process.terminate()
        process.wait(60)


def rows_of(document: dict, key: str) -> list[dict]:
    return next(table["rows"] for table in document["tables"] if table["key"] == key)
