"""The program's processes on this node at one moment, for viewers."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Literal

from teho.config.privacy import masked_command, readable
from teho.devices.host.procstat import read_stat, slurp
from teho.devices.procfile import read_text
from teho.errors import InputError
from teho.model.device import GpuDetails
from teho.model.live import ProcessNow
from teho.schedulers.task import read_task

__all__ = ["ProcessList", "command_text"]

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_MOST_PER_S = 256
"""Most processes that are read in a second: a recorder must not become slow if it is watched."""
_MOST = 64
"""Processes that are sent, at most: those on a GPU, and those with the most CPU time."""
_LONGEST_COMMAND = 160
_KEPT_COMMANDS = 128
"""Command lines whose texts are kept: the same processes are read each second."""
_LARGEST_ENVIRONMENT = 1 << 20
_ALL_IDS = "0 0 4294967295"
"""The map of a user namespace in which each user has the same id as on the machine."""


class ProcessList:
    """Reads what each process uses. The first reading has no shares of CPU time.

    Args:
        proc: mount point of the process file system.
    """

    def __init__(self, proc: str = "/proc") -> None:
        self._proc = proc
        # Without this file, the kernel has no user namespaces.
        ids = " ".join(read_text(Path(f"{proc}/self/uid_map")).split())
        self._has_machine_ids = ids in {"", _ALL_IDS}
        self._ticks: dict[tuple[int, bytes], int] = {}
        self._ranks: dict[tuple[int, bytes, str], int | None] = {}
        self._read_s = float("-inf")
        self._newest: list[ProcessNow] = []

    def read(
        self, pids: Collection[int], now_s: float, gpus: Mapping[str, GpuDetails]
    ) -> list[ProcessNow]:
        """Return the processes that exist, those with the most CPU time first.

        If there are very many processes, most calls return the list of an earlier call.

        Args:
            pids: the program's processes.
            now_s: monotonic time.
            gpus: the details of each GPU by its id.
        """
        span_s = now_s - self._read_s
        if span_s < len(pids) / _MOST_PER_S:
            return self._newest
        self._read_s = now_s
        before, self._ticks = self._ticks, {}
        ranks, self._ranks = self._ranks, {}
        found: list[ProcessNow] = []
        for pid in pids:
            directory = f"{self._proc}/{pid}"
            try:
                stat = read_stat(directory)
                if stat is None or stat.is_dead:
                    continue
                pages = slurp(directory + "/statm").split(None, 2)
                key = pid, stat.start
                # Read again each time: a shell may have become another program.
                command = command_text(slurp(directory + "/cmdline"))
                owner = self._owner(directory)
            except (OSError, ValueError):
                continue  # it has ended, or it cannot be read
            self._ticks[key] = stat.own_ticks
            # A process that executes another program may get another environment.
            program = (*key, command)
            self._ranks[program] = ranks[program] if program in ranks else _rank(directory)
            ticks = stat.own_ticks - before[key] if key in before else None
            found.append(
                ProcessNow(
                    pid=pid,
                    parent=int(stat.parent),
                    command=command,
                    cpu_percent=None if ticks is None else 100 * ticks / _TICKS_PER_S / span_s,
                    resident_bytes=int(pages[1]) * _PAGE_BYTES,
                    threads=stat.threads,
                    rank=self._ranks[program],
                    gpu_memory_bytes={
                        device: details.processes[pid].memory_bytes
                        for device, details in gpus.items()
                        if pid in details.processes
                    },
                    gpu_types={
                        device: details.processes[pid].types
                        for device, details in gpus.items()
                        if pid in details.processes
                    },
                    owner=owner,
                )
            )
        found.sort(key=lambda one: (not one.gpu_memory_bytes, *_by_cpu(one)))
        self._newest = sorted(found[:_MOST], key=_by_cpu)
        return self._newest

    def _owner(self, directory: str) -> int | Literal["own", "other"]:
        """Return the owner of a process, whose effective user the kernel gives to its folder."""
        number = os.stat(directory).st_uid  # noqa: PTH116 - thousands of processes
        if number == os.geteuid():
            return "own"
        # In a user namespace, the ids of other users mean nothing outside of it.
        return number if self._has_machine_ids else "other"


def _by_cpu(process: ProcessNow) -> tuple[float, int]:
    return -(process.cpu_percent or 0.0), process.pid


def _rank(directory: str) -> int | None:
    """Return the rank of a process from its environment; None without several tasks."""
    try:
        with open(directory + "/environ", "rb") as file:  # noqa: PTH123 - thousands of processes
            content = file.read(_LARGEST_ENVIRONMENT)
        pairs = (entry.partition("=") for entry in os.fsdecode(content).split("\0"))
        task = read_task({name: value for name, _, value in pairs}, "")
    except (OSError, InputError):
        return None
    return task.rank if task.size > 1 else None


@lru_cache(_KEPT_COMMANDS)
def command_text(content: bytes) -> str:
    """Return the command line of a process without secrets; a kernel's process has none."""
    words = [readable(os.fsdecode(word)) for word in content.rstrip(b"\0").split(b"\0")]
    text = shlex.join(masked_command(words)) if words != [""] else ""
    return text if len(text) <= _LONGEST_COMMAND else f"{text[: _LONGEST_COMMAND - 1]}…"
