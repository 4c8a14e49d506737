"""Hints on affinity that the scheduler leaves for OpenMP, and that confuse Python's libraries."""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, symptom
from teho.doctor.snapshot import Snapshot
from teho.model.finding import Severity

__all__ = ["ABOUT", "DECISIVE", "ID", "check"]

ID = "openmp-hints"
ABOUT = "GOMP_CPU_AFFINITY and KMP_AFFINITY"
DECISIVE = False

_NAMES = ("GOMP_CPU_AFFINITY", "KMP_AFFINITY")


def check(snapshot: Snapshot) -> Outcome:
    """Look for hints, of which the catalogue's source for ARC4 says that they are to be unset.

    GNU's OpenMP binds each thread to one core of the list, and a program's main thread with
    them: loader workers, which inherit that, all run on a single core.
    """
    set_ = {name: snapshot.environment[name] for name in _NAMES if snapshot.environment.get(name)}
    if not set_:
        return fine("neither is set")
    return [
        symptom(
            ID,
            Severity.WARNING,
            f"{' and '.join(set_)} {'is' if len(set_) == 1 else 'are'} set: the program's main "
            "thread is bound to one core, and its loader workers inherit that.",
            f"`unset {' '.join(set_)}` in the job script, before the program.",
            *((name, text[:60], "") for name, text in set_.items()),
        )
    ]
