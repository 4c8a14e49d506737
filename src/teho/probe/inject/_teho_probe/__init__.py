"""The probe of `teho run` inside a Python program.

It needs only the standard library, and Python 3.8 or newer. It never prints, and never raises an
exception in the program. It writes one file, with one JSON object a line, into the folder named by
`TEHO_PROBE`; see docs/format.md.
"""

from __future__ import annotations

import os

from _teho_probe.imports import watch_imports
from _teho_probe.notes import Notes
from _teho_probe.plans import Plans
from _teho_probe.sampler import Sampler

__all__ = ["NOTES", "enter"]

NOTES = Notes()
"""`teho.step` and `teho.phase` add to these notes."""


def enter() -> None:
    """Start the probe in this process and its forked children."""
    folder = os.environ.get("TEHO_PROBE")
    if not folder:
        return
    import atexit

    watch_imports(NOTES)
    sampler = Sampler(folder, NOTES)
    plans = NOTES.plans = Plans(folder, NOTES)

    def finish() -> None:
        plans.finish()
        sampler.finish()

    NOTES.finish = finish
    os.register_at_fork(
        before=sampler.pause,
        after_in_parent=sampler.resume,
        after_in_child=sampler.restart,
    )
    # The first exit handler runs last, so the program's own exit handlers are recorded too.
    atexit.register(finish)
    sampler.start()
