"""multiprocessing: its forked workers end by `os._exit`, so their notes must be written before."""

from __future__ import annotations

from time import monotonic

from _teho_probe.lines import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from _teho_probe.notes import Notes

_LEAST_S = 0.2
"""Shorter processes leave no file, because some programs fork very many of them."""
_LAST = -1000


def multiprocessing_util(module: Any, notes: Notes) -> None:
    """Let each worker write at its end, after all its other finalizers."""

    def forked(_: Any) -> None:
        began_s = monotonic()

        def end() -> None:
            if monotonic() - began_s >= _LEAST_S:
                notes.finish()

        module.Finalize(None, end, exitpriority=_LAST)

    module.register_after_fork(notes, forked)
