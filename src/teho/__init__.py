"""Teho shows whether the GPUs of a shared cluster earned their keep.

>>> import teho
>>> run = teho.load("last")
>>> run.summary, run.findings, run.table("gpu")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from teho.version import __version__

if TYPE_CHECKING:
    from teho.show.loaded import LoadedRun

__all__ = ["__version__", "load"]


def load(run: str = "last") -> LoadedRun:
    """Open a recording.

    Args:
        run: its id, a unique beginning of it, its name, `last`, or a directory.

    Raises:
        teho.errors.RecordingError: there is no such recording, or it does not read.
    """
    from teho.show.loaded import LoadedRun

    return LoadedRun.open(run)


def __dir__() -> list[str]:
    return __all__
