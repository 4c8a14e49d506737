"""The recorder: samples all devices of this node until the program has ended.

It runs in a separate process, so that a driver that hangs or crashes costs only rows of the
recording.
"""

from __future__ import annotations

import contextlib
import os
import time
from functools import partial
from pathlib import Path

import msgspec

from teho.config.privacy import readable
from teho.devices.host.proctree import ProcessTree
from teho.model.device import Readings
from teho.model.live import LiveSample
from teho.model.metric import METRICS_BY_NAME
from teho.model.run import Clock, Trouble
from teho.observe.clock import ClockServer, compare_clocks
from teho.observe.idle_waits import IdleWaits
from teho.observe.job_processes import JobProcesses
from teho.observe.native_functions import NativeFunctions
from teho.observe.node_leader import NodeLeader, PeerTask, PeerTasks, visible_to_any
from teho.observe.node_sources import NodeSources, open_sources
from teho.observe.plan import RecordingPlan
from teho.observe.present_lines import with_lines
from teho.observe.process_list import ProcessList
from teho.observe.programs import Programs
from teho.observe.publisher import Publisher
from teho.observe.recorder_end import RecorderEnd
from teho.observe.run_changes import MANY_NODES, RunChanges, seal_spread_s, share_of
from teho.observe.sampler import SignalSampler
from teho.observe.spool import Spool
from teho.observe.stack_sampling import StackSampling
from teho.observe.traces import Traces
from teho.observe.uninstrumented import Uninstrumented
from teho.process.child import Child
from teho.process.json_lines import LineReader, send, wait_for
from teho.store.journal import Journal
from teho.store.layout import node_file, probe_folder, replace_file
from teho.store.pack import seal

__all__ = ["Recorder", "record"]

_FLUSH_S = 9.5
"""Rows are on disk after 10 s at most: this time, and one sample."""
_ARRIVAL_S = 2.0
"""How long to wait for the other tasks of this node before the first sample."""
_TOUCH_S = 40.0
"""Readers take a run for interrupted if its recorders change no file for 90 s."""
_SOON_S = 1.0
"""Least time between two flushes if the run may be stuck. In a job of many nodes, the rows end too,
but the nodes flush as usual: they would all flush at the same moment."""
_FLUSH_SAMPLES = 10
"""Runs with a short sampling period are often short, so they flush sooner."""
_ORPHAN_WAIT_S = 0.5


def record(control: int, back: int, program_pid: int, leader: NodeLeader | None = None) -> None:
    """Wait for the plan, take samples until the program has ended, then seal the recording.

    Args:
        control: read end of the pipe from the supervisor.
        back: write end of the pipe to the supervisor.
        program_pid: the program's process.
        leader: given if this recorder serves the other tasks of this node too.
    """
    peers = PeerTasks(leader) if leader else None
    reader = LineReader(control)
    while not reader.closed:
        wait_for([reader.descriptor, *(peers.descriptors if peers else ())])
        if peers:
            # If this node cannot be recorded, the other tasks must not wait.
            peers.read_messages()
            peers.confirm_ends()
        for message in reader.messages():
            if "plan" in message:
                plan = msgspec.convert(message["plan"], RecordingPlan)
                Recorder(plan, reader, back, program_pid, peers).run()
                return


class Recorder:
    """The recorder of one node.

    Args:
        plan: what it has to do.
        control: reads the messages of its supervisor.
        back: descriptor for its answers.
        program_pid: the program's process; None if none runs on this node.
        peers: the other tasks of the step on this node.
        recorder_end: decides when to end; only for a node without a program.

    Attributes:
        sealed: whether it has ended with all rows in one file.
    """

    def __init__(
        self,
        plan: RecordingPlan,
        control: LineReader,
        back: int,
        program_pid: int | None = None,
        peers: PeerTasks | None = None,
        recorder_end: RecorderEnd | None = None,
    ) -> None:
        self.sealed = False
        self._plan = plan
        self._control = control
        self._back = back
        self._program_pid = program_pid
        self._peers = peers
        self._known_peers: list[PeerTask] = []
        self._recorder_end = recorder_end
        self._has_ended = False
        self._released = False
        self._journal = Journal(plan.run, plan.node)
        self._sampler = SignalSampler(plan.node, plan.started_at, plan.period_s)
        self._troubles: dict[str, Trouble] = {}
        members = JobProcesses(plan.job, plan.mark, plan.job_variables) if plan.job else None
        self._tree = ProcessTree(
            frozenset({os.getpid(), *plan.helper_pids}), members, used_before=plan.used_before
        )
        if program_pid is not None and plan.supervisor_pid is not None:
            self._tree.add(program_pid, plan.supervisor_pid)
        self._wait_for_peers()
        self._cores = self._find_cores()
        self._environment = self._find_environment()
        self._sources = self._open_sources()
        self._node = self._sources.node
        self._spool = (
            Spool(plan.spool, probe_folder(plan.run), plan.node, plan.node_count)
            if plan.spool
            else None
        )
        changes = RunChanges(plan.run, plan.node_count)
        self._traces = Traces(plan.spool, plan.run, plan.node, changes) if plan.spool else None
        self._stacks = StackSampling(plan.spool, len(self._cores)) if plan.spool else None
        self._publisher = Publisher(plan.run, plan.node, plan.node_count, changes)
        self._processes = ProcessList()
        self._uninstrumented = Uninstrumented()
        self._programs = Programs()
        self._functions = NativeFunctions()
        self._idle = IdleWaits(share_of(plan.node) if plan.node_count > 1 else 0.0)
        self._touched_s = 0.0
        self._clock_server: ClockServer | None = None
        self._clock: Clock | None = None

    def _wait_for_peers(self) -> None:
        """Wait until the other tasks of this node have connected: their cores count too."""
        deadline_s = time.monotonic() + _ARRIVAL_S
        while self._peers and not self._peers.all_here and time.monotonic() < deadline_s:
            self._wait(0.1)
            self._add_peers()
            self._peers.confirm_ends()

    def _add_peers(self) -> bool:
        """Add the tasks that have connected; return whether there are new ones."""
        if self._peers is None:
            return False
        self._peers.read_messages()
        new = [peer for peer in self._peers.arrived if peer not in self._known_peers]
        for peer in new:
            self._known_peers.append(peer)
            self._tree.add(peer.pid, peer.supervisor, peer.helper_pids)
        return bool(new)

    @property
    def _pids(self) -> list[int]:
        """The programs' processes, one for each task."""
        own = [self._program_pid] if self._program_pid else []
        return [*own, *(peer.pid for peer in self._known_peers)]

    def _find_cores(self) -> tuple[int, ...]:
        """Return the cores of the allocation: the supervisor's and the programs'.

        A program that has bound itself to some of them may use fewer.
        """
        cores = set(self._plan.cores or os.sched_getaffinity(0))
        for pid in self._pids:
            with contextlib.suppress(OSError):
                cores |= os.sched_getaffinity(pid)
        return tuple(sorted(cores))

    def _find_environment(self) -> dict[str, str]:
        environment = {name: readable(value) for name, value in os.environ.items()}
        return visible_to_any(environment, self._known_peers)

    def _open_sources(self) -> NodeSources:
        return open_sources(self._plan, self._pids, self._tree, self._cores, self._environment)

    def _reopen_sources(self) -> None:
        """Add the cores and GPUs of tasks that connected after the first sample."""
        # Readings of cores are lists in this order: new cores are added at the end.
        late = [core for core in self._find_cores() if core not in self._cores]
        environment = self._find_environment()
        if not late and environment == self._environment:
            return
        self._cores, self._environment = (*self._cores, *late), environment
        self._sources.close()
        known = self._node
        self._sources = self._open_sources()
        node = self._sources.node
        here = {device.id for device in node.devices}
        gone = (device for device in known.devices if device.id not in here)
        self._node = msgspec.structs.replace(
            node, devices=(*gone, *node.devices), clock_port=known.clock_port
        )
        self._sampler.resume(self._read(ends=True), self._elapsed())
        self._write_node()

    def run(self) -> None:
        """Record until the program on this node has ended, or the supervisor reports its end."""
        self._begin_clocks()
        self._write_node()
        readings = self._read(ends=True)
        self._sampler.begin(readings, self._elapsed())
        self._publish(readings, self._elapsed())  # a viewer may wait for this node
        next_s = self._elapsed() + self._plan.period_s
        flush_s = min(_FLUSH_S, _FLUSH_SAMPLES * self._plan.period_s)
        flushed_s = -flush_s
        if self._plan.node_count >= MANY_NODES:
            # The nodes of a large job do not create their files all at once.
            flushed_s += share_of(self._plan.node) * flush_s
        has_new_peers = is_urgent = False
        while True:
            self._wait(next_s - self._elapsed())
            has_new_peers = self._add_peers() or has_new_peers
            if self._is_finished():
                break
            if self._clock is not self._node.clock:
                self._write_node()
            now = self._elapsed()
            if now < next_s:
                continue
            readings = self._read()
            self._journal.append(self._sampler.add(readings, now, self._elapsed() - now))
            if self._stacks and self._stacks.is_urgent():
                is_urgent = self._plan.node_count < MANY_NODES
                self._journal.append(self._sampler.cut(now))
            self._publish(readings, now)
            has_probe = self._spool is not None and not self._spool.is_empty
            if not has_probe and self._idle.check(readings, self._sources.host.pids, now):
                self._write_node()
            if self._traces:
                self._traces.check(time.monotonic())
            if has_new_peers:
                self._reopen_sources()
                has_new_peers = False
            if now - flushed_s >= (_SOON_S if is_urgent else flush_s) or self._is_warned:
                self._flush()
                flushed_s, is_urgent = now, False
            # After a late sample, the next one comes a full period later.
            next_s = max(next_s + self._plan.period_s, self._elapsed())
        self._finish()

    def _publish(self, readings: Readings, elapsed_s: float) -> None:
        """Send the newest sample to the viewers, if there are any."""
        now_s = time.monotonic()
        if self._publisher.watching(now_s):
            gpus = {
                device: details
                for source in self._sources.every
                for device, details in source.details().items()
            }
            processes = self._processes.read(self._tree.pids, now_s, gpus)
            if self._stacks and self._spool and not self._spool.is_empty:
                processes = with_lines(processes, self._stacks.lines(now_s))
            sample = LiveSample(
                node=self._plan.node,
                elapsed_s=elapsed_s,
                rows=self._sampler.newest(readings),
                processes=processes,
                gpus={device: details.state for device, details in gpus.items()},
            )
            self._publisher.publish(sample, now_s)

    def _begin_clocks(self) -> None:
        """Offer the time to the other nodes, or compare this clock with the first node's."""
        if self._plan.node_count == 1:
            return
        if not self._plan.began_here:
            # In another thread; the node's next description has the answer.
            compare_clocks(self._plan.run, partial(setattr, self, "_clock"))
            return
        try:
            self._clock_server = ClockServer()
        except OSError as error:
            self._trouble(
                "the clocks of other nodes cannot be compared with the clock of this node: "
                f"{error.strerror}"
            )
            return
        self._node = msgspec.structs.replace(self._node, clock_port=self._clock_server.port)

    def _finish(self) -> None:
        now = self._elapsed()
        readings = self._read(ends=True)
        if not (self._plan.continues and _is_alive(self._program_pid or 0)):
            # The program has ended: its memory is not 0 but has no value.
            readings = {
                device: {
                    name: value for name, value in values.items() if not _ends_with_program(name)
                }
                for device, values in readings.items()
            }
        self._journal.append(self._sampler.add(readings, now))
        self._journal.append(self._sampler.finish(now))
        if self._stacks:
            self._stacks.stop()
        self._flush()
        self._journal.close()
        if self._traces and (lost := self._traces.close()):
            self._trouble(lost)
        if self._spool:
            if note := self._uninstrumented.sentence(is_any_in=not self._spool.is_empty):
                notes = (*self._node.notes, note)
                self._node = msgspec.structs.replace(self._node, notes=notes)
            self._spool.close()
        self._functions.close()
        if self._functions.refused:
            note = (
                "It is not known in which functions the programs that are not Python used their "
                f"CPU time: {self._functions.refused}"
            )
            self._node = msgspec.structs.replace(self._node, notes=(*self._node.notes, note))
        self._sources.close()
        if self._clock_server:
            self._clock_server.close()
        self._publisher.close()
        if self._journal.problem is None:
            send(self._back, sealing=True)
            if self._peers:
                self._peers.report_sealing()
            try:
                problem = Child(self._seal).join()
            except OSError as error:
                problem = error.strerror or str(error)
            if problem:
                self._trouble(
                    f"the recording was not sealed, so its rows are not in one file: {problem}. "
                    "The samples can still be read"
                )
            else:
                self._node = msgspec.structs.replace(self._node, sealed=True)
        self.sealed = self._write_node() and self._node.sealed
        if self._peers:
            self._peers.confirm_ends()

    def _seal(self) -> None:
        """Seal, in a child. In a large job, the nodes do not begin at the same moment."""
        if not self._is_warned:  # the rows are on disk already, but a warned step has little time
            time.sleep(share_of(self._plan.node) * seal_spread_s(self._plan.node_count))
        seal(self._plan.run, self._plan.node)

    def _elapsed(self) -> float:
        return time.monotonic() - self._plan.started_s

    def _is_finished(self) -> bool:
        """Return whether all programs of this node have ended."""
        if any("end" in message for message in self._control.messages()):
            self._has_ended = True
        elif (self._control.closed or self._is_warned) and not self._has_ended:
            # The supervisor was killed. Its program may still run, so the recording continues.
            self._has_ended = self._is_over()
        others_run = self._peers is not None and self._peers.are_running
        if self._has_ended and not others_run:
            return True
        # The task that ends last waits until all rows are sealed, the others do not wait.
        if self._peers:
            self._peers.confirm_ends()
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
        """Wait for a message of the supervisor or of another task."""
        if self._control.has_messages:
            return
        readable_ends = [] if self._control.closed else [self._control.descriptor]
        readable_ends += self._peers.descriptors if self._peers else []
        if self._control.closed:
            wait_s = min(wait_s, _ORPHAN_WAIT_S)
        wait_for(readable_ends, wait_s)

    def _read(self, *, ends: bool = False) -> Readings:
        readings: Readings = {}
        pids = frozenset({self._program_pid} if self._program_pid else ())
        for source in self._sources.every:
            readings.update(source.read(pids, ends=ends))
            for sentence in source.alerts():
                self._trouble(sentence)
            if source is self._sources.host:
                pids = self._sources.host.pids
                self._programs.read(pids)
                self._functions.read(self._sources.host.cpu_ticks)
                if self._spool:
                    self._uninstrumented.check(pids)
                if self._recorder_end:
                    self._recorder_end.check(self._tree)
        return readings

    def _flush(self) -> None:
        if self._journal.flush():
            self._touched_s = self._elapsed()
        elif self._elapsed() - self._touched_s >= _TOUCH_S:
            # A long run has minutes between two rows. The file's time shows that it continues.
            self._touched_s = self._elapsed()
            with contextlib.suppress(OSError):
                os.utime(node_file(self._plan.run, self._plan.node))
        if self._spool:
            try:
                self._spool.collect()
            except OSError as error:
                self._trouble(f"the probes' data could not be written: {error}")
            if self._traces and (lost := self._traces.collect()):
                self._trouble(lost)
            if self._spool.is_full:
                self._trouble(
                    "there are too many Python processes: the later processes have no probe"
                )
        if self._journal.problem:
            self._trouble(f"samples could not be written: {self._journal.problem}")
        if self._journal.lost_rows:
            self._trouble("samples were deleted, because they could not be written for a long time")
        if self._sampler.absences_changed:
            self._sampler.absences_changed = False
            self._write_node()

    def _trouble(self, sentence: str) -> None:
        """Report a problem to the supervisor and in the node's file, but only once."""
        if sentence in self._troubles:
            return
        elapsed_s = round(self._elapsed(), 3)
        self._troubles[sentence] = Trouble(elapsed_s=elapsed_s, what=sentence)
        send(self._back, node=self._plan.node, trouble=sentence, elapsed_s=elapsed_s)

    def _write_node(self) -> bool:
        """Write the description of this node; return whether this succeeded."""
        self._node = msgspec.structs.replace(
            self._node,
            ranks=self._peers.ranks if self._peers else self._plan.ranks,
            clock=self._clock,
            absences=tuple(self._sampler.absences.values()),
            troubles=tuple(self._troubles.values()),
            program_samples=self._programs.samples,
            programs=self._programs.most_seen(),
            shell_loops=self._programs.scripts.loops(),
            native=self._functions.found(),
            idle=self._idle.found,
        )
        path = node_file(self._plan.run, self._plan.node)
        try:
            replace_file(path, msgspec.json.encode(self._node))
        except OSError as error:
            self._trouble(f"the node's description could not be written: {error}")
            return False
        return True


def _ends_with_program(name: str) -> bool:
    """Return whether a metric has no meaning once the program has ended."""
    is_of_program = name.startswith(("job_", "gpu_job_", "gpu_memory_used"))
    return is_of_program and METRICS_BY_NAME[name].kind == "gauge"


def _is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[0] not in {b"Z", b"X"}
