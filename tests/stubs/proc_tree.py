"""Fixture trees: a /proc with processes that can be made, changed and ended, and host files."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from teho.devices.host.proctree import ProcessTree

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
REAPER, ROOT, RECORDER = 10, 20, 30
"""Pids: the supervisor, its program, and its recorder."""


def plant(root: Path, files: dict[str, str]) -> Path:
    """Write files below a root, their directories included."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def stat_line(
    pid: int,
    parent: int,
    *,
    name: str = "python",
    state: str = "S",
    ticks: tuple[int, int] = (0, 0),
    children_ticks: tuple[int, int] = (0, 0),
    threads: int = 1,
    start: int = 100,
) -> str:
    """Return /proc/PID/stat in the form of proc(5)."""
    before = f"{state} {parent} {pid} {pid} 0 -1 4194304 99 0 0 0"
    times = f"{ticks[0]} {ticks[1]} {children_ticks[0]} {children_ticks[1]}"
    return (
        f"{pid} ({name}) {before} {times} 20 0 {threads} 0 {start} 97312 3133440 394 " + "0 " * 28
    )


@dataclass
class FakeProcess:
    pid: int
    parent: int
    start: int = 100
    ticks: int = 0
    children_ticks: int = 0
    io: int = 0
    children_io: int = 0
    state: str = "S"
    resident_pages: int = 10
    shared_pages: int = 4
    thread_states: list[str] = field(default_factory=lambda: ["S"])
    open_files: int = 3


class FakeProc:
    """A /proc in which the test is the kernel."""

    def __init__(self, path: Path, reaper: int = REAPER, root: int = ROOT) -> None:
        self.path = path
        self.processes: dict[int, FakeProcess] = {}
        self._births = 0
        plant(path, {"cpuinfo": "", "meminfo": ""})
        for pid, parent in ((1, 0), (reaper, 1), (root, reaper)):
            self.add(FakeProcess(pid, parent))
        self.reaper = reaper

    def add(self, process: FakeProcess) -> FakeProcess:
        self.processes[process.pid] = process
        self._births += 1
        self.write(process.pid)
        return process

    def write(self, pid: int) -> None:
        process = self.processes[pid]
        whole = process.io + process.children_io
        threads = len(process.thread_states)
        files = {
            "stat": stat_line(
                pid,
                process.parent,
                state=process.state,
                ticks=(process.ticks // 3, process.ticks - process.ticks // 3),
                children_ticks=(0, process.children_ticks),
                threads=threads,
                start=process.start,
            ),
            "statm": f"100 {process.resident_pages} {process.shared_pages} 1 0 5 0\n",
            "io": _io_text(whole),
            f"task/{pid}/io": _io_text(process.io),
        }
        for number, state in enumerate(process.thread_states):
            files[f"task/{pid + number}/stat"] = stat_line(
                pid + number, process.parent, state=state
            )
        files |= {f"fd/{number}": "" for number in range(process.open_files)}
        plant(self.path / str(pid), files)
        self._write_loadavg()

    def _write_loadavg(self) -> None:
        threads = sum(len(process.thread_states) for process in self.processes.values())
        plant(self.path, {"loadavg": f"0.10 0.20 0.30 1/{threads} {self._births}\n"})

    def end(self, pid: int, *, waited: bool = True) -> None:
        """End and reap a process: its children go to the reaper, its use to its parent."""
        process = self.processes.pop(pid)
        shutil.rmtree(self.path / str(pid))
        self._write_loadavg()
        parent = self.processes.get(process.parent)
        if parent and waited:
            parent.children_ticks += process.ticks + process.children_ticks
            parent.children_io += process.io + process.children_io
            self.write(parent.pid)
        for child in self.processes.values():
            if child.parent == pid:
                child.parent = self.reaper if self.reaper in self.processes else 1
                self.write(child.pid)


def _io_text(amount: int) -> str:
    return (
        f"rchar: {amount}\nwchar: {2 * amount}\nsyscr: 1\nsyscw: 1\n"
        f"read_bytes: {3 * amount}\nwrite_bytes: {4 * amount}\ncancelled_write_bytes: 0\n"
    )


def follow(fake: FakeProc) -> ProcessTree:
    """Return a tree of the fake's program."""
    tree = ProcessTree(proc=str(fake.path))
    tree.add(ROOT, REAPER, frozenset({RECORDER}))
    return tree
