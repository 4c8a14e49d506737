"""The recorder: samples every device of this node until the program has ended.

It runs in a process of its own, so that a driver that hangs or crashes costs rows
of the recording and nothing else.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import msgspec

from teho.config.privacy import readable
from teho.devices.host import HostSource, describe_host
from teho.devices.proctree import ProcessTree
from teho.errors import DeviceError
from teho.model.device import Readings, Source
from teho.model.metric import METRICS_BY_NAME
from teho.model.run import Node, Trouble
from teho.observe.pipes import LineReader, send
from teho.observe.plan import Plan
from teho.observe.sampler import Sampler
from teho.schedulers.allocation import read_allocation
from teho.store.journal import Journal
from teho.store.layout import node_file, replace_file
from teho.store.pack import Child, seal

__all__ = ["record"]

_FLUSH_S = 9.5
"""Rows reach the disk at least every 10 s: this, and the sample in flight."""
_FLUSH_SAMPLES = 10
"""Short periods are for short runs: those flush sooner."""


def record(control: int, back: int, program_pid: int) -> None:
    """Wait for the plan, sample until told that the program has ended, then seal.

    Args:
        control: read end of the pipe from the supervisor.
        back: write end of the pipe to it.
        program_pid: the program's own process.
    """
    reader = LineReader(control)
    while not reader.closed:
        reader.wait()
        for message in reader.messages():
            if "plan" in message:
                plan = msgspec.convert(message["plan"], Plan)
                _Recorder(plan, reader, back, program_pid).run()
                return


class _Recorder:
    def __init__(self, plan: Plan, control: LineReader, back: int, program_pid: int) -> None:
        self._plan = plan
        self._control = control
        self._back = back
        self._program_pid = program_pid
        self._journal = Journal(plan.run, plan.node)
        self._sampler = Sampler(plan.node, plan.started_at, plan.period_s)
        self._told: set[str] = set()
        self._troubles: list[Trouble] = []
        self._sources, self._host, self._node = _find_sources(plan, program_pid)

    def run(self) -> None:
        self._write_node()
        self._sampler.begin(self._read(), self._elapsed())
        next_s = self._elapsed() + self._plan.period_s
        flush_s = min(_FLUSH_S, _FLUSH_SAMPLES * self._plan.period_s)
        flushed_s = -flush_s
        while not self._ended(next_s - self._elapsed()):
            now = self._elapsed()
            if now < next_s:
                continue
            self._journal.append(self._sampler.add(self._read(), now))
            if now - flushed_s >= flush_s:
                self._flush()
                flushed_s = now
            # A late sample is not made up for by a burst of them.
            next_s = max(next_s + self._plan.period_s, self._elapsed())
        self._finish()

    def _finish(self) -> None:
        now = self._elapsed()
        # The program is gone: its memory is not 0, it is no more.
        readings = {
            device: {name: value for name, value in values.items() if not _ends_with_it(name)}
            for device, values in self._read().items()
        }
        self._journal.append(self._sampler.add(readings, now))
        self._journal.append(self._sampler.finish(now))
        self._flush()
        self._journal.close()
        for source in self._sources:
            source.close()
        if self._journal.problem is None:
            try:
                problem = Child(partial(seal, self._plan.run, self._plan.node)).join()
            except OSError as error:
                problem = error.strerror or str(error)
            if problem:
                self._trouble(f"the recording was not sealed: {problem}; its live rows still read")
            else:
                self._node = msgspec.structs.replace(self._node, sealed=True)
        self._write_node()

    def _elapsed(self) -> float:
        return time.monotonic() - self._plan.started_s

    def _ended(self, wait_s: float) -> bool:
        """Wait until the next sample is due, or the program has ended."""
        if self._control.wait(wait_s) and any("end" in one for one in self._control.messages()):
            return True
        if not self._control.closed:
            return False
        # The supervisor was killed. Its program may well run on, and so do we.
        time.sleep(max(0.0, min(wait_s, 0.5)))
        return not _is_alive(self._program_pid)

    def _read(self) -> Readings:
        readings: Readings = {}
        pids = frozenset({self._program_pid})
        for source in self._sources:
            readings.update(source.read(pids))
            if source is self._host:
                pids = self._host.pids
        return readings

    def _flush(self) -> None:
        self._journal.flush()
        if self._journal.problem:
            self._trouble(f"rows could not be written: {self._journal.problem}")
        if self._journal.lost_rows:
            self._trouble("rows were given up because they could not be written for too long")
        if self._sampler.absences_changed:
            self._sampler.absences_changed = False
            self._write_node()

    def _trouble(self, sentence: str) -> None:
        """Tell the supervisor and the node's own file of a problem, once each."""
        if sentence in self._told:
            return
        self._told.add(sentence)
        elapsed_s = round(self._elapsed(), 3)
        self._troubles.append(Trouble(elapsed_s=elapsed_s, what=sentence))
        send(self._back, trouble=sentence, elapsed_s=elapsed_s)

    def _write_node(self) -> None:
        self._node = msgspec.structs.replace(
            self._node,
            absences=tuple(self._sampler.absences.values()),
            troubles=tuple(self._troubles),
        )
        try:
            replace_file(
                node_file(self._plan.run, self._plan.node), msgspec.json.encode(self._node)
            )
        except OSError as error:
            self._trouble(f"the node's description could not be written: {error}")


def _ends_with_it(name: str) -> bool:
    """Tell whether a metric has no meaning once the program has ended."""
    its_own = name.startswith(("job_", "gpu_job_", "gpu_memory_used"))
    return its_own and METRICS_BY_NAME[name].kind == "gauge"


def _is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[0] not in {b"Z", b"X"}


def _find_sources(plan: Plan, program_pid: int) -> tuple[list[Source], HostSource, Node]:
    """Open everything that this node can be asked, and describe the node."""
    cores = tuple(sorted(os.sched_getaffinity(program_pid if _is_alive(program_pid) else 0)))
    tree = ProcessTree(program_pid, plan.supervisor_pid, frozenset({os.getpid()}))
    environment = {name: readable(value) for name, value in os.environ.items()}
    host = HostSource(tree, cores, environment)
    facts = describe_host()
    allocation = read_allocation(
        environment, frozenset(cores), host.cgroup_limit_bytes, facts.memory_bytes
    )
    sources: list[Source] = [host]
    notes, refusals = list(host.notes), []
    for open_source in (_open_nvidia, _open_amd):
        try:
            source = open_source(environment)
        except DeviceError as error:
            refusals.append(error.found)
        else:
            sources.append(source)
            notes.extend(source.notes)
    if len(sources) == 1:
        # Where one vendor's GPUs are found, the other's absence is no news.
        notes.append("No GPU: " + "; ".join(refusals))
    node = Node(
        name=plan.node,
        started_at=plan.started_at,
        period_s=plan.period_s,
        cores=cores,
        core_count_node=facts.core_count,
        memory_node_bytes=facts.memory_bytes,
        cpu_model=facts.cpu_model,
        allocation=allocation,
        devices=tuple(device for source in sources for device in source.devices),
        notes=tuple(notes),
        program_pid=program_pid,
        recorder_pid=os.getpid(),
    )
    return sources, host, node


def _open_nvidia(environment: Mapping[str, str]) -> Source:
    from teho.devices.nvidia import NvidiaSource

    return NvidiaSource(environment)


def _open_amd(environment: Mapping[str, str]) -> Source:
    from teho.devices.amd import AmdSource

    return AmdSource(environment)
