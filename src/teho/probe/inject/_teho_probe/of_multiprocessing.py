"""multiprocessing: its forked workers end by `os._exit`, and would take what they saw with them."""

from __future__ import annotations

from time import monotonic

from _teho_probe.lines import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from _teho_probe.notes import Notes

_LEAST_S = 0.2
"""Programs that fork a process for each small thing are not to leave a file for each."""
_LAST = -1000


def multiprocessing_util(module: Any, notes: Notes) -> None:
    """Have each worker write at its end, after all that it does there itself."""

    def forked(_: Any) -> None:
        began_s = monotonic()

        def end() -> None:
            if monotonic() - began_s >= _LEAST_S:
                notes.finish()

        module.Finalize(None, end, exitpriority=_LAST)

    module.register_after_fork(notes, forked)
