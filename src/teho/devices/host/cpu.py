"""CPU time of the job's cores, and the node's run queue and context switches."""

from __future__ import annotations

from pathlib import Path

from teho.devices.host.part import FilePart
from teho.devices.procfile import words_of
from teho.model.device import Reading
from teho.model.missing import Missing, Reason

__all__ = ["Cpu"]

_IDLE, _IOWAIT = 3, 4
_SHARES = ("cpu_busy_percent", "core_busy_percent", "cpu_iowait_percent")
# user nice system idle iowait irq softirq steal. `user` includes the remaining two fields.
_FIELDS = 8


class Cpu(FilePart):
    """The job's cores, from /proc/stat (proc(5)).

    Args:
        root: root of the file system.
        cores: the job's logical CPUs; `core_busy_percent` follows their order.
    """

    metrics: tuple[str, ...] = (*_SHARES, "runnable_tasks", "context_switches", "tasks_started")

    def __init__(self, root: Path, cores: tuple[int, ...]) -> None:
        super().__init__(root / "proc/stat")
        self._cores = cores
        self._before: list[list[int]] | None = None

    def values_in(self, data: bytes) -> dict[str, Reading]:
        """Return the shares since the last call in %, and the node's run queue and switches.

        Busy is all time except idle and iowait. It includes time stolen by the hypervisor. The
        first call has no shares, nor has a call within a clock tick of the last one.
        """
        readings: dict[str, Reading] = {
            "context_switches": _number(data, b"ctxt"),
            "tasks_started": _number(data, b"processes"),
            # Without this task, which always runs when the kernel counts.
            "runnable_tasks": _number(data, b"procs_running", less=1),
        }
        now = [_core_ticks(data, core) for core in self._cores]
        ticks = [core for core in now if core is not None]
        if not ticks or len(ticks) < len(now):
            self._before = None
            gone = f"CPU {self._cores[now.index(None)]}" if now else "the CPUs of the job"
            missing = Missing(Reason.ABSENT, f"/proc/stat has no line for {gone}")
            readings.update(dict.fromkeys(_SHARES, missing))
        elif self._before is None:
            self._before = ticks
        else:
            shares = _shares(self._before, ticks)
            if shares:
                self._before = ticks
                readings.update(shares)
        return readings


def _shares(before: list[list[int]], now: list[list[int]]) -> dict[str, Reading]:
    """Return busy and iowait shares; empty if a core's clock did not advance."""
    busy: list[int] = []
    waited = 0
    totals: list[int] = []
    for old, new in zip(before, now, strict=True):
        # A time may go backwards, for example iowait. Then it counts as unchanged.
        gained = [max(0, b - a) for a, b in zip(old, new, strict=True)]
        totals.append(sum(gained))
        busy.append(totals[-1] - gained[_IDLE] - gained[_IOWAIT])
        waited += gained[_IOWAIT]
    if not all(totals):
        return {}
    values: tuple[Reading, ...] = (
        100.0 * (sum(busy) / sum(totals)),
        [100.0 * (b / t) for b, t in zip(busy, totals, strict=True)],
        100.0 * (waited / sum(totals)),
    )
    return dict(zip(_SHARES, values, strict=True))


def _core_ticks(data: bytes, core: int) -> list[int] | None:
    """Return one core's eight times in clock ticks; None if it is not online."""
    words = words_of(data, b"cpu%d" % core)
    return [int(word) for word in words[:_FIELDS]] if len(words) >= _FIELDS else None


def _number(data: bytes, name: bytes, less: int = 0) -> int | Missing:
    words = words_of(data, name)
    if not words:
        return Missing(Reason.UNSUPPORTED, f"/proc/stat has no line {name.decode()}")
    return max(0, int(words[0]) - less)
