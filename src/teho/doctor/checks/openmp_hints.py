"""Does a variable for OpenMP bind the program to one core?"""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, warning
from teho.doctor.snapshot import Snapshot
from teho.explain.wording import joined

__all__ = ["ABOUT", "check"]

ABOUT = "GOMP_CPU_AFFINITY and KMP_AFFINITY"

_NAMES = ("GOMP_CPU_AFFINITY", "KMP_AFFINITY")


def check(snapshot: Snapshot) -> Outcome:
    """Find the variables. The catalogue's source for ARC4 says to unset them.

    GNU's OpenMP binds each thread to one core of the list, also the program's main thread. Loader
    workers inherit this, so all of them run on a single core.
    """
    found = {name: snapshot.environment[name] for name in _NAMES if snapshot.environment.get(name)}
    if not found:
        return fine("neither variable is set")
    return warning(
        f"{joined(list(found))} {'is' if len(found) == 1 else 'are'} set, so the program's main "
        "thread and its loader workers all run on one core.",
        f"Run `unset {' '.join(found)}` in the job script, before the program.",
        *((name, text[:60], "") for name, text in found.items()),
    )
