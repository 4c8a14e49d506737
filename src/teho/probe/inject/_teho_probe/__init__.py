"""What `teho run` sees from inside a Python program.

Standard library alone, Python 3.8 or newer. It never prints, and nothing of it raises into the
program. It says what it saw in a file of its own, one JSON object a line, in the folder that
`TEHO_PROBE` names; see docs/format.md.
"""

from __future__ import annotations

import os

from _teho_probe.imports import watch_imports
from _teho_probe.notes import Notes
from _teho_probe.sampler import Sampler

__all__ = ["NOTES", "enter"]

NOTES = Notes()
"""What `teho.step` and `teho.phase` add to."""


def enter() -> None:
    """Begin to watch this process, and those that it forks."""
    folder = os.environ.get("TEHO_PROBE")
    if not folder:
        return
    import atexit

    watch_imports(NOTES)
    sampler = Sampler(folder, NOTES)
    NOTES.finish = sampler.finish
    os.register_at_fork(
        before=sampler.pause,
        after_in_parent=sampler.go_on,
        after_in_child=sampler.begin_anew,
    )
    # Registered first, and so run last: what the program does at its end is seen too.
    atexit.register(sampler.finish)
    sampler.start()
