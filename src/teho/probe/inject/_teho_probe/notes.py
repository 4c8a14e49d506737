"""What the probe notes of a program's libraries, until it is written.

Written to by the program's own threads, read by the sampler's: each value is replaced, or grows.
"""

from __future__ import annotations

import os
import sys
from _thread import get_native_id
from time import monotonic

from _teho_probe.lines import TYPE_CHECKING, in_words, place_in_words

if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional

    Facts = Dict[str, Any]

__all__ = ["Loader", "Notes"]

_LIBRARIES = ("/site-packages/", "/dist-packages/", "/_teho_probe/", "/lib/python3.", "<frozen ")
_MOST_LOADERS = 50
_MOST_STEPS = 100_000
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "OMP_PROC_BIND",
    "OMP_PLACES",
    "GOMP_CPU_AFFINITY",
    "KMP_AFFINITY",
)


class Loader:
    """What gives the program its batches, as made in one line of it with the same settings.

    Args:
        settings: its library's names for them.
        made_at: file, function, line and text of the program where it was made.
    """

    def __init__(self, settings: Facts, made_at: Any) -> None:
        self.settings = settings
        self.made_at = made_at
        self.made = 0
        self.epochs = 0
        self.batches = 0
        self.first_s = 0.0
        """Waiting for the first batch of each epoch, the start of workers included."""
        self.waits: Dict[int, List[float]] = {}
        """For later batches: bits of the µs waited -> how often, and how long in all."""
        self.batch: Facts = {}
        """What a batch holds, as far as was looked."""

    def began(self, wait_s: float) -> None:
        """Note the first batch of an epoch."""
        self.batches += 1
        self.epochs += 1
        self.first_s += wait_s

    def waited(self, wait_s: float) -> None:
        """Note another batch."""
        self.batches += 1
        place = int(wait_s * 1e6).bit_length()
        seen = self.waits.get(place)
        if seen is None:
            seen = self.waits[place] = [0, 0.0]
        seen[0] += 1
        seen[1] += wait_s

    def words(self) -> Facts:
        """Return it as it is written."""
        return {
            "settings": self.settings,
            "made_at": self.made_at,
            "made": self.made,
            "epochs": self.epochs,
            "batches": self.batches,
            "first_s": round(self.first_s, 4),
            "waits": {place: [n, round(s, 4)] for place, (n, s) in sorted(self.waits.items())},
            "batch": self.batch,
        }


class Notes:
    """Of one process."""

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget all: this is a forked child now."""
        self._thread = get_native_id()
        self.libraries: Dict[str, Facts] = {}
        self.loaders: Dict[Any, Loader] = {}
        self.steps = 0
        self._last_step_s: Optional[float] = None
        self._first_step_s: Optional[float] = None
        self._times: Optional[List[float]] = [] if os.environ.get("TEHO_PROBE_STEPS") else None
        self.phases: List[str] = []
        self._failures: List[Facts] = []
        self._written: List[Facts] = []

    def fact(self, library: str, **facts: Any) -> None:
        """Note facts of a library; the newest of a name counts."""
        self.libraries[library] = {**self.libraries.get(library, {}), **facts}

    def step(self) -> None:
        """Note that a step of the program's work is done."""
        now_s = monotonic()
        self.steps += 1
        if self._first_step_s is None:
            self._first_step_s = now_s
        self._last_step_s = now_s
        if self._times is not None and len(self._times) < _MOST_STEPS:
            self._times.append(now_s)

    def loader(self, settings: Facts) -> Loader:
        """Return the loader with these settings that is made where the program is now."""
        made_at = _caller()
        key = repr((made_at, settings))
        found = self.loaders.get(key)
        if found is None:
            found = Loader(settings, made_at)
            if len(self.loaders) < _MOST_LOADERS:
                self.loaders[key] = found
        found.made += 1
        return found

    def failed(self, name: str, error: Exception) -> None:
        """Note that a library could not be looked into."""
        self._failures.append({"failed": "%s: %s" % (name, in_words(error))})

    def words(self) -> List[Facts]:
        """Return what is new since the last time, as lines."""
        words: List[Facts] = [{"process": self._process()}]
        words += [{"library": name, "facts": own} for name, own in self.libraries.items()]
        for number, loader in enumerate(list(self.loaders.values())):
            words.append({"loader": number, **loader.words()})
        if self.steps:
            words.append(self._progress())
        new = [one for one in words if one not in self._written]
        self._written = words
        failures, self._failures = self._failures, []
        return new + failures

    def _progress(self) -> Facts:
        steps: Facts = {
            "steps": self.steps, "first_s": self._first_step_s, "last_s": self._last_step_s,
        }  # fmt: skip
        if self._times:
            times, self._times = self._times, []
            steps["times_s"] = [round(one, 5) for one in times]
        return steps

    def _process(self) -> Facts:
        found: Facts = {"cores": len(os.sched_getaffinity(0))}
        found["variables"] = {
            name: os.environ[name] for name in _THREAD_VARIABLES if name in os.environ
        }
        with_delay = _read("/proc/self/task/%d/schedstat" % self._thread).split()
        if len(with_delay) == 3:
            found["wait_for_core_s"] = round(int(with_delay[1]) / 1e9, 3)
        try:
            found["threads"] = len(os.listdir("/proc/self/task"))
        except OSError:
            pass
        return found


def _read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def _caller() -> Any:
    """Return the innermost place in the program itself, in words; None where all is a library's."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        if not any(part in frame.f_code.co_filename for part in _LIBRARIES):
            return place_in_words(frame.f_code, frame.f_lasti)
        frame = frame.f_back
    return None
