"""The recorder: samples every device of this node until the program has ended.

It runs in a process of its own, so that a driver that hangs or crashes costs rows
of the recording and nothing else.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from teho.config.privacy import readable
from teho.devices.host.cgroup import cpu_quota
from teho.devices.host.proctree import ProcessTree
from teho.devices.host.source import HostSource, describe_host
from teho.devices.sources import open_gpus
from teho.model.device import DeviceSource, Readings
from teho.model.metric import METRICS_BY_NAME
from teho.model.run import Clock, Node, Trouble
from teho.observe.clock import ClockServer, compare_clocks
from teho.observe.job_processes import JobProcesses
from teho.observe.node_leader import NodeLeader, PeerTask, PeerTasks, visible_to_any
from teho.observe.plan import RecordingPlan
from teho.observe.recorder_end import RecorderEnd
from teho.observe.sampler import SignalSampler
from teho.observe.spool import Spool
from teho.observe.stack_sampling import StackSampling
from teho.observe.uninstrumented import Uninstrumented
from teho.process.child import Child
from teho.process.json_lines import LineReader, send, wait_for
from teho.schedulers.allocation import read_allocation
from teho.schedulers.registry import scheduler_or_none
from teho.store.journal import Journal
from teho.store.layout import node_file, probe_folder, replace_file
from teho.store.pack import seal

__all__ = ["Recorder", "record"]

_FLUSH_S = 9.5
"""Rows reach the disk at least every 10 s: this, and the sample in flight."""
_ARRIVAL_S = 2.0
"""How long to wait for the other tasks of this node before the first sample."""
_FLUSH_SAMPLES = 10
"""Short periods are for short runs: those flush sooner."""


def record(control: int, back: int, program_pid: int, leader: NodeLeader | None = None) -> None:
    """Wait for the plan, sample until told that the program has ended, then seal.

    Args:
        control: read end of the pipe from the supervisor.
        back: write end of the pipe to it.
        program_pid: the program's own process.
        leader: of a task whose recorder serves the other tasks of this node as well.
    """
    peers = PeerTasks(leader) if leader else None
    reader = LineReader(control)
    while not reader.closed:
        wait_for([reader.descriptor, *(peers.descriptors if peers else ())])
        if peers:
            # Where nothing can be recorded, nobody is to wait for us.
            peers.hear()
            peers.note_ends()
        for message in reader.messages():
            if "plan" in message:
                plan = msgspec.convert(message["plan"], RecordingPlan)
                Recorder(plan, reader, back, program_pid, peers).run()
                return


class Recorder:
    """One node's recorder.

    Args:
        plan: what it is to do.
        control: what its supervisor says.
        back: where it answers.
        program_pid: the program's own process; None if none runs on this node.
        peers: the other tasks of the step on this node.
        watch: tells where there is no program when to go.

    Attributes:
        sealed: whether it has come to its end, with all rows in one file.
    """

    def __init__(
        self,
        plan: RecordingPlan,
        control: LineReader,
        back: int,
        program_pid: int | None = None,
        peers: PeerTasks | None = None,
        watch: RecorderEnd | None = None,
    ) -> None:
        self.sealed = False
        self._plan = plan
        self._control = control
        self._back = back
        self._program_pid = program_pid
        self._peers = peers
        self._recorder_end = watch
        self._has_ended = False
        self._released = False
        self._journal = Journal(plan.run, plan.node)
        self._sampler = SignalSampler(plan.node, plan.started_at, plan.period_s)
        self._told: set[str] = set()
        self._troubles: list[Trouble] = []
        members = JobProcesses(plan.job, plan.mark) if plan.job else None
        self._tree = ProcessTree(frozenset({os.getpid(), *plan.apart}), members)
        if program_pid is not None and plan.supervisor_pid is not None:
            self._tree.add(program_pid, plan.supervisor_pid)
        self._await_guests()
        self._cores = self._find_cores()
        self._environment = self._find_environment()
        self._sources, self._host, self._node = self._find_sources()
        self._spool = Spool(plan.spool, probe_folder(plan.run), plan.node) if plan.spool else None
        self._stacks = StackSampling(plan.spool, len(self._cores)) if plan.spool else None
        self._uninstrumented = Uninstrumented()
        self._clock_server: ClockServer | None = None
        self._clock: Clock | None = None

    def _await_guests(self) -> None:
        """Let the other tasks of this node come forward: their cores are the job's too."""
        self._met: list[PeerTask] = []
        self._met_late = False
        deadline_s = time.monotonic() + _ARRIVAL_S
        while self._peers and not self._peers.all_here and time.monotonic() < deadline_s:
            self._wait(0.1)
            self._meet_guests()
            self._peers.note_ends()
        self._met_late = False

    def _meet_guests(self) -> None:
        if self._peers is None:
            return
        self._peers.hear()
        for peer in self._peers.arrived:
            if peer in self._met:
                continue
            self._met.append(peer)
            self._met_late = True
            self._tree.add(peer.pid, peer.supervisor, peer.apart)

    @property
    def _pids(self) -> list[int]:
        """The programs' own processes, one a task."""
        own = [self._program_pid] if self._program_pid else []
        return [*own, *(peer.pid for peer in self._met)]

    def _find_cores(self) -> tuple[int, ...]:
        """Return the cores of the allocation: those that the supervisor got, and the programs'.

        A program that has bound itself to a part of them may use fewer.
        """
        cores = set(self._plan.cores or os.sched_getaffinity(0))
        for pid in self._pids:
            with contextlib.suppress(OSError):
                cores |= os.sched_getaffinity(pid)
        return tuple(sorted(cores))

    def _find_environment(self) -> dict[str, str]:
        environment = {name: readable(value) for name, value in os.environ.items()}
        return visible_to_any(environment, self._met)

    def _find_sources(self) -> tuple[list[DeviceSource], HostSource, Node]:
        return _find_sources(self._plan, self._pids, self._tree, self._cores, self._environment)

    def _look_anew(self) -> None:
        """Take in the cores and GPUs of tasks that came after the first sample."""
        self._met_late = False
        # Readings of cores are lists in this order: new ones go to its end.
        late = [core for core in self._find_cores() if core not in self._cores]
        environment = self._find_environment()
        if not late and environment == self._environment:
            return
        self._cores, self._environment = (*self._cores, *late), environment
        for source in self._sources:
            source.close()
        known = self._node
        self._sources, self._host, node = self._find_sources()
        here = {device.id for device in node.devices}
        gone = (device for device in known.devices if device.id not in here)
        self._node = msgspec.structs.replace(
            node, devices=(*gone, *node.devices), clock_port=known.clock_port
        )
        self._sampler.begin_anew(self._read(ends=True), self._elapsed())
        self._write_node()

    def run(self) -> None:
        """Record until the program has ended, on this node or as its supervisor says."""
        self._begin_clocks()
        self._write_node()
        self._sampler.begin(self._read(ends=True), self._elapsed())
        next_s = self._elapsed() + self._plan.period_s
        flush_s = min(_FLUSH_S, _FLUSH_SAMPLES * self._plan.period_s)
        flushed_s = -flush_s
        while not self._ended(next_s - self._elapsed()):
            if self._clock is not self._node.clock:
                self._write_node()
            now = self._elapsed()
            if now < next_s:
                continue
            readings = self._read()
            self._journal.append(self._sampler.add(readings, now, self._elapsed() - now))
            if self._met_late:
                self._look_anew()
            if now - flushed_s >= flush_s or self._is_warned:
                self._flush()
                flushed_s = now
            # A late sample is not made up for by a burst of them.
            next_s = max(next_s + self._plan.period_s, self._elapsed())
        self._finish()

    def _begin_clocks(self) -> None:
        """Offer our clock to the other nodes, or compare ours with the first node's."""
        if self._plan.node_count == 1:
            return
        if self._plan.began_here:
            try:
                self._clock_server = ClockServer()
            except OSError as error:
                self._trouble(f"clocks of other nodes cannot be compared: {error.strerror}")
                return
            self._node = msgspec.structs.replace(self._node, clock_port=self._clock_server.port)
        else:
            compare_clocks(self._plan.run, self._note_clock)

    def _note_clock(self, clock: Clock) -> None:
        """In another thread: keep it for the node's next description."""
        self._clock = clock

    def _finish(self) -> None:
        now = self._elapsed()
        # The program is gone: its memory is not 0, it is no more.
        readings = {
            device: {name: value for name, value in values.items() if not _ends_with_it(name)}
            for device, values in self._read(ends=True).items()
        }
        self._journal.append(self._sampler.add(readings, now))
        self._journal.append(self._sampler.finish(now))
        if self._stacks:
            self._stacks.stop()
        self._flush()
        self._journal.close()
        if self._spool:
            if said := self._uninstrumented.sentence(is_any_in=not self._spool.is_empty):
                notes = (*self._node.notes, said)
                self._node = msgspec.structs.replace(self._node, notes=notes)
            self._spool.close()
        for source in self._sources:
            source.close()
        if self._clock_server:
            self._clock_server.close()
        if self._journal.problem is None:
            try:
                problem = Child(partial(seal, self._plan.run, self._plan.node)).join()
            except OSError as error:
                problem = error.strerror or str(error)
            if problem:
                self._trouble(f"the recording was not sealed: {problem}; its live rows still read")
            else:
                self._node = msgspec.structs.replace(self._node, sealed=True)
        self.sealed = self._write_node() and self._node.sealed
        if self._peers:
            self._peers.note_ends()

    def _elapsed(self) -> float:
        return time.monotonic() - self._plan.started_s

    def _ended(self, wait_s: float) -> bool:
        """Wait until the next sample is due, or every program of this node has ended."""
        self._wait(wait_s)
        self._meet_guests()
        if any("end" in message for message in self._control.messages()):
            self._has_ended = True
        elif (self._control.closed or self._is_warned) and not self._has_ended:
            # The supervisor was killed. Its program may well run on, and so do we.
            self._has_ended = self._is_over()
        others_run = self._peers is not None and self._peers.are_running
        if self._has_ended and not others_run:
            return True
        # The last one to end is let go when all is sealed, the others at once.
        if self._peers:
            self._peers.note_ends()
        if self._has_ended and not self._released:
            send(self._back, released=True)
            self._released = True
        return False

    @property
    def _is_warned(self) -> bool:
        return self._recorder_end is not None and self._recorder_end.is_warned

    def _is_over(self) -> bool:
        if self._recorder_end:
            return self._recorder_end.is_over
        return self._program_pid is None or not _is_alive(self._program_pid)

    def _wait(self, wait_s: float) -> None:
        """Wait for a word of the supervisor or of another task."""
        if self._control.has_messages:
            return
        open_ = [] if self._control.closed else [self._control.descriptor]
        open_ += self._peers.descriptors if self._peers else []
        if self._control.closed:
            wait_s = min(wait_s, 0.5)
        wait_for(open_, wait_s)

    def _read(self, *, ends: bool = False) -> Readings:
        readings: Readings = {}
        pids = frozenset({self._program_pid} if self._program_pid else ())
        for source in self._sources:
            readings.update(source.read(pids, ends=ends))
            for sentence in source.alerts():
                self._trouble(sentence)
            if source is self._host:
                pids = self._host.pids
                if self._spool:
                    self._uninstrumented.look(pids)
                if self._recorder_end:
                    self._recorder_end.look(self._tree)
        return readings

    def _flush(self) -> None:
        self._journal.flush()
        # Rows of a long run are minutes apart: here other nodes see that it goes on.
        with contextlib.suppress(OSError):
            os.utime(node_file(self._plan.run, self._plan.node))
        if self._spool:
            try:
                self._spool.collect()
            except OSError as error:
                self._trouble(f"what the probe saw could not be written: {error}")
            if self._spool.is_full:
                self._trouble(
                    "so many Python processes ran that the later ones were not looked into"
                )
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
        send(self._back, node=self._plan.node, trouble=sentence, elapsed_s=elapsed_s)

    def _write_node(self) -> bool:
        """Write down what is known of this node; return whether that could be done."""
        self._node = msgspec.structs.replace(
            self._node,
            ranks=self._peers.ranks if self._peers else self._plan.ranks,
            clock=self._clock,
            absences=tuple(self._sampler.absences.values()),
            troubles=tuple(self._troubles),
        )
        try:
            replace_file(
                node_file(self._plan.run, self._plan.node), msgspec.json.encode(self._node)
            )
        except OSError as error:
            self._trouble(f"the node's description could not be written: {error}")
            return False
        return True


def _ends_with_it(name: str) -> bool:
    """Return whether a metric has no meaning once the program has ended."""
    its_own = name.startswith(("job_", "gpu_job_", "gpu_memory_used"))
    return its_own and METRICS_BY_NAME[name].kind == "gauge"


def _is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[0] not in {b"Z", b"X"}


def _find_sources(
    plan: RecordingPlan,
    pids: Sequence[int],
    tree: ProcessTree,
    cores: tuple[int, ...],
    environment: Mapping[str, str],
) -> tuple[list[DeviceSource], HostSource, Node]:
    """Open everything that this node can be asked, and describe the node."""
    host = HostSource(tree, cores, environment)
    facts = describe_host()
    allocation = read_allocation(
        environment, frozenset(cores), host.cgroup_limit_bytes, facts.memory_bytes, cpu_quota()
    )
    gpus, refusals = open_gpus(environment)
    sources: list[DeviceSource] = [host, *gpus]
    notes = [note for source in sources for note in source.notes]
    nodes = allocation.node_count or 1
    if nodes > plan.node_count:
        scheduler = scheduler_or_none(allocation.scheduler)
        why = scheduler.only_this_node(plan.node, nodes, allocation.node_list or "")
        notes += [why] if why else []
    if not gpus:
        # Where one vendor's GPUs are found, the other's absence is no news.
        notes.append("No GPU: " + "; ".join(error.found for error in refusals))
    node = Node(
        name=plan.node,
        started_at=plan.started_at,
        started_s=plan.started_s,
        period_s=plan.period_s,
        cores=cores,
        core_count_node=facts.core_count,
        memory_node_bytes=facts.memory_bytes,
        cpu_model=facts.cpu_model,
        allocation=allocation,
        devices=tuple(device for source in sources for device in source.devices),
        notes=tuple(notes),
        program_pid=pids[0] if pids else None,
        recorder_pid=os.getpid(),
    )
    return sources, host, node
