"""A run of 10 h and of 24 h that hangs, and one that does not, with a clock that is simulated.

The loops of the stack sampler and of the row sampler are the real ones. The program is not: its
stack and its CPU time follow from the time.
"""

from __future__ import annotations

import json
import os
import random
import socket
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace

import pytest

from teho.explain.judge import judge_by
from teho.explain.policy import load_policy
from teho.explain.program import program_of
from teho.explain.rules.job import run_stuck
from teho.explain.summary import summarise
from teho.model.run import FORMAT_VERSION, Node, Run
from teho.model.stack import State
from teho.observe import stack_lines, stack_sampler, stays
from teho.observe.present_lines import LineAnswers
from teho.observe.run_changes import MANY_NODES
from teho.observe.sampled_process import SampledProcess
from teho.observe.sampler import SignalSampler
from teho.observe.stack_sampler import StackSampler
from teho.observe.stay_details import StayDetails
from teho.observe.stays import Stays, add_samples
from teho.store.journal import Journal
from teho.store.layout import create_run_directory, new_run_id, probe_folder
from teho.store.long_stays import LongStays
from teho.store.probe import processes_in
from teho.unwind.code import Code

START = datetime(2026, 11, 20, 10, 0, tzinfo=timezone.utc)
BEGAN_S = 1000.0
"""The simulated monotonic clock at the start."""
STEP_S = 0.1
SAMPLE_S = 1.0
FLUSH_S, SOON_S, REPORT_S, READ_S = 9.5, 1.0, 10.0, 5.0
"""As in the recorder, and in `teho top`."""
HOUR_S = 3600.0


class Line(Code):
    """A function with one line."""

    def place(self, offset: int) -> tuple[int, int | None, int | None]:
        return offset, None, None

    def lines(self, offset: int) -> None:
        return None


FUNCTION = Line("/home/ann/train.py", "main", 1, b"", (3, 11), 0, b"")
WORK = (11, 12, 13)
HANGS_AT = 99


class Clock:
    """The time, and what happens in each second."""

    def __init__(self) -> None:
        self.now_s = BEGAN_S
        self.each_second: Callable[[], None] = lambda: None

    def wait(self, _: int, until_s: float) -> bool:
        """Go on to a time, as the timer of the sampler; return whether the run has ended."""
        while self.now_s < until_s:
            second = float(int(self.now_s) + 1)
            self.now_s = min(until_s, second)
            if self.now_s == second:
                self.each_second()
        return self.now_s >= self.end_s

    end_s = 0.0


class Program(SampledProcess):
    """A program whose line follows from the time.

    Args:
        clock: the time.
        line_at: seconds since the start -> line, and whether the thread waits.
    """

    def __init__(self, clock: Clock, line_at: Callable[[float], tuple[int, bool]]) -> None:
        self.name, self.pid = "7-100", 7
        self._clock, self._line_at = clock, line_at
        now_s = clock.now_s
        self.began_s = self.seen_s = self.written_s = self.due_s = now_s
        self.ran_s = self.queued_s = 0.0
        self.seen, self.watched = {}, {}
        self.core, self.shares_core = None, False
        self._ran_ns = 0
        self.waits = SimpleNamespace(
            core=lambda: 0, account=self._account, times=lambda: (self._ran_ns / 1e9, 0.0)
        )  # type: ignore[assignment]
        self.stays = Stays(now_s, self._account())

    def _account(self) -> bytes:
        return b"%d 0 5" % self._ran_ns

    def sample(self, core: object) -> bool:
        now_s = self._clock.now_s
        line, waits = self._line_at(now_s - BEGAN_S)
        key = ((FUNCTION, line),)
        if not waits:
            self._ran_ns += int(1e9 * (now_s - self.seen_s))
        ended = self.stays.move_to(key[0], self.seen_s, now_s, self._account())
        if ended is not None:
            add_samples(self.seen, ended.samples)
        state = State.LOCK if waits else State.RUNNING
        figures = self.stays.present.samples.setdefault((key, state), [0, 0.0])
        figures[0] += 1
        figures[1] += now_s - self.seen_s
        self.seen_s = now_s
        return ended is not None and ended.writes > 0

    def close(self) -> None:
        pass


class Simulation:
    """A run, from its start to its end."""

    def __init__(
        self, folder: Path, patch: pytest.MonkeyPatch, line_at: Callable[[float], tuple[int, bool]]
    ) -> None:
        random.seed(1)  # the times of the samples
        self.clock = Clock()
        self.spool = folder / "spool"
        self.spool.mkdir()
        cpu_s = iter(range(10**9))
        fake = SimpleNamespace(
            monotonic=lambda: self.clock.now_s, thread_time=lambda: next(cpu_s) * 0.001,
            time_ns=lambda: 0,
        )  # fmt: skip
        patch.setattr(stack_sampler, "time", fake)
        patch.setattr(stack_sampler, "details_of", lambda _: StayDetails([], [], None))
        self.urgent, say = os.pipe2(os.O_NONBLOCK)
        self.sampler = StackSampler(str(self.spool), 2, say)
        self.sampler._timer = self.clock  # type: ignore[assignment]
        self.sampler._core = SimpleNamespace(avoid=lambda _: False, move_to=lambda _: None)  # type: ignore[assignment]
        self.sampler._find = lambda _: None  # type: ignore[method-assign]
        self.sampler._processes["7-100"] = Program(self.clock, line_at)
        self.sampler._lines.search_sources = lambda: None  # type: ignore[method-assign]

    def run(self, seconds: float) -> None:
        self.clock.end_s = BEGAN_S + seconds
        self.sampler._run(0)

    def slices(self) -> int:
        """Return the number of slices in the file of the sampler."""
        return len(self.lengths_s())

    def lengths_s(self) -> list[float]:
        """Return the length of each slice in the file of the sampler."""
        (file,) = self.spool.glob("stacks-*.jsonl")
        lines = (json.loads(line) for line in file.read_text().splitlines() if '"seen"' in line)
        return [line["until_s"] - line["from_s"] for line in lines]


class Recording:
    """What the recorder and the probe write of a simulated run, and the report of it.

    Args:
        folder: an empty folder.
        simulation: the run.
        hang_s: when it hangs.
        node_count: from 100 nodes on, a report is only made if the threads of one node stay. This
            is another node, which has just flushed.
    """

    def __init__(
        self, folder: Path, simulation: Simulation, hang_s: float, node_count: int = 1
    ) -> None:
        self.simulation, self.hang_s = simulation, hang_s
        self.is_large = node_count >= MANY_NODES
        self.stays: LongStays | None = None
        self.directory = create_run_directory(folder, new_run_id(START, "x"), b"{}")
        self.probe = folder / "probe"
        self.probe.mkdir()
        self.journal = Journal(self.directory, "n1")
        self.rows = SignalSampler("n1", START, SAMPLE_S)
        self.rows.begin({"node": {"job_cpu_s": 0.0}}, 0.0)
        self.flushed_s = self.reported_s = 0.0
        self.is_urgent = False
        self.named_s: float | None = None
        self.sentence = ""
        simulation.clock.each_second = self.sample

    def sample(self) -> None:
        """Do what the recorder does in each second, and make a report each 10 s after the hang."""
        elapsed_s = self.simulation.clock.now_s - BEGAN_S
        used_s = min(elapsed_s, self.hang_s)
        self.journal.append(self.rows.add({"node": {"job_cpu_s": used_s}}, elapsed_s))
        try:
            urgent = os.read(self.simulation.urgent, 4096)
        except BlockingIOError:
            urgent = b""
        if urgent:
            self.is_urgent = not self.is_large
            self.journal.append(self.rows.cut(elapsed_s))
        # Before the hang, a flush only costs time.
        pause_s = SOON_S if self.is_urgent else FLUSH_S if elapsed_s > self.hang_s - 60 else 900.0
        if elapsed_s - self.flushed_s >= pause_s:
            self.flushed_s, self.is_urgent = elapsed_s, False
            self.journal.flush()
            for path in self.simulation.spool.glob("stacks-*"):
                (self.probe / f"n1-{path.name}").write_bytes(path.read_bytes())
        if elapsed_s > self.hang_s - 30 and self.is_report_due(elapsed_s):
            said = self.stuck(elapsed_s)
            if said and self.named_s is None:
                self.named_s, self.sentence = elapsed_s, said

    def is_report_due(self, elapsed_s: float) -> bool:
        """Return whether `teho top` makes a report now."""
        if elapsed_s - self.reported_s < (READ_S if self.is_large else REPORT_S):
            return False
        self.reported_s = elapsed_s
        if not self.is_large:
            return True
        (path,) = self.simulation.spool.glob("stacks-*")
        folder = probe_folder(self.directory)
        folder.mkdir(exist_ok=True)
        (folder / f"n0-{path.name}").write_bytes(path.read_bytes())
        if self.stays is None:
            self.stays = LongStays(self.directory, [("n0", 7)])
        return self.stays.have_grown()

    def stuck(self, elapsed_s: float) -> str:
        """Return what the report says of a run that is stuck."""
        self._write_steps(elapsed_s)
        problems: list[str] = []
        processes = processes_in(self.probe, problems)
        node = Node(name="n1", started_at=START, started_s=BEGAN_S, period_s=1.0, cores=(0, 1))
        run = Run(
            format=FORMAT_VERSION, id="x", command=("x",), started_at=START, host="n1",
            nodes=(node,),
        )  # fmt: skip
        program = program_of(processes)
        summary = summarise(run, self.directory, problems, program=program, processes=processes)
        found = judge_by(run_stuck, run, summary, load_policy())
        return found[0].sentence if isinstance(found, list) and found else ""

    def _write_steps(self, elapsed_s: float) -> None:
        """Write the steps as the probe wrote them last: in a long run, it writes seldom."""
        every_s = max(10.0, elapsed_s / 720)
        written_s = elapsed_s - elapsed_s % every_s
        last_s = min(written_s, self.hang_s)
        steps = int(last_s / STEP_S)
        head = {
            "probe": 1, "pid": 7, "parent_pid": 1, "python": "3.11.7", "program": [],
            "began_s": BEGAN_S,
        }  # fmt: skip
        progress = {
            "steps": steps, "first_s": BEGAN_S, "last_s": BEGAN_S + last_s,
            "between": {"17": [steps - 1, last_s]},
        }  # fmt: skip
        end = {"from_s": BEGAN_S, "until_s": BEGAN_S + written_s, "seen": {}}
        text = "".join(json.dumps(line) + "\n" for line in (head, progress, end))
        (self.probe / "n1-7-100.jsonl").write_text(text)


def training(hang_s: float = float("inf")) -> Callable[[float], tuple[int, bool]]:
    """Return a program that works in three lines, and hangs at some time in another one."""
    chance = random.Random(1)
    return lambda s: (HANGS_AT, True) if s >= hang_s else (chance.choice(WORK), False)


def pausing(every_s: float, pause_s: float) -> Callable[[float], tuple[int, bool]]:
    """Return a program that waits in one line regularly, as for a checkpoint."""
    goes_on = training()
    return lambda s: (55, True) if s % every_s < pause_s else goes_on(s)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("hours", [0.25, 0.5, 10, 24])
def test_a_hang_is_named_within_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: float
) -> None:
    hang_s = HOUR_S * hours
    simulation = Simulation(tmp_path, monkeypatch, training(hang_s))
    recording = Recording(tmp_path, simulation, hang_s)
    simulation.run(hang_s + 120.0)
    assert recording.named_s is not None
    assert recording.sentence.startswith("The run is stuck: no step for ")
    assert "(train.py:99)" in recording.sentence
    assert 45.0 <= recording.named_s - hang_s <= 60.0 + 10 * STEP_S


@pytest.mark.drawn(2)
@pytest.mark.parametrize("hours", [0.5, 10, 24])
@pytest.mark.parametrize("later_s", [0.0, 4.0, 8.0])
def test_a_hang_of_many_nodes_is_named_after_two_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: float, later_s: float
) -> None:
    """Of such a run, reports are made seldom, and the nodes do not flush at the same time."""
    hang_s = HOUR_S * hours + later_s
    simulation = Simulation(tmp_path, monkeypatch, training(hang_s))
    recording = Recording(tmp_path, simulation, hang_s, node_count=1250)
    simulation.run(hang_s + 400.0)
    assert recording.named_s is not None
    assert "(train.py:99)" in recording.sentence
    assert 45.0 <= recording.named_s - hang_s <= 75.0


@pytest.mark.drawn(1)
@pytest.mark.parametrize("hours", [10, 24])
def test_a_pause_that_ends_is_no_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: float
) -> None:
    hang_s = HOUR_S * hours
    goes_on = training()

    def line_at(s: float) -> tuple[int, bool]:
        return (HANGS_AT, True) if hang_s <= s < hang_s + 40.0 else goes_on(s)

    simulation = Simulation(tmp_path, monkeypatch, line_at)
    recording = Recording(tmp_path, simulation, hang_s)
    simulation.run(hang_s + 300.0)
    assert recording.named_s is None


def test_a_run_that_continues_is_not_called_stuck_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hang_s = 10 * HOUR_S
    goes_on = training()

    def line_at(s: float) -> tuple[int, bool]:
        return (HANGS_AT, True) if hang_s <= s < hang_s + 90.0 else goes_on(s)

    simulation = Simulation(tmp_path, monkeypatch, line_at)
    recording = Recording(tmp_path, simulation, hang_s)
    simulation.run(hang_s + 80.0)
    assert recording.named_s is not None
    simulation.run(hang_s + 130.0)
    recording.sample()
    # Only the samples show it here: the steps and the CPU time of this simulation end at 10 h.
    (process,) = processes_in(recording.probe, [])
    assert process.at_end[0].frames[0].line == HANGS_AT
    lines = {seen.frames[0].line for seen in process.at_end}
    assert lines & set(WORK)


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("line_at", "more"),
    [
        (training(), 10),
        # A slice that ends in a pause is divided where the pause begins.
        (pausing(60.0, 12.0), 30),
        # Some of the pauses are written, until they are known as usual.
        (pausing(60.0, 20.0), 16 * 5),
        (pausing(1200.0, 200.0), 16 * 20 * 4),
        # One line for ever, such as `model.fit(…)`.
        (lambda _: (11, False), 60),
    ],
)
def test_a_long_run_that_continues_has_few_slices(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    line_at: Callable[[float], tuple[int, bool]],
    more: int,
) -> None:
    counts = []
    for name, mark_s in (("with", stays._MARK_S), ("without", float("inf"))):
        (tmp_path / name).mkdir()
        with monkeypatch.context() as patch:
            patch.setattr(stays, "_MARK_S", mark_s)
            simulation = Simulation(tmp_path / name, patch, line_at)
            simulation.run(24 * HOUR_S)
            counts.append(simulation.slices())
    assert 400 < counts[1] < 600
    assert counts[1] <= counts[0] <= counts[1] + more


@pytest.mark.parametrize(("has_room", "most_s"), [(True, 61.0), (False, 605.0)])
def test_while_a_run_is_watched_its_newest_slice_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_room: bool, most_s: float
) -> None:
    simulation = Simulation(tmp_path, monkeypatch, training())
    simulation.run(10 * HOUR_S)
    before = simulation.slices()
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    if not has_room:  # the file must not become full because somebody watches
        monkeypatch.setattr(stack_lines, "_ROOM_SHARE", 0.0)
    with ours, its:
        simulation.sampler._answers = LineAnswers(its)
        simulation.clock.each_second = lambda: ours.send(b"?") and None
        monkeypatch.setattr(StackSampler, "_line_of", lambda *_: None)
        simulation.run(11 * HOUR_S)
    watched = simulation.lengths_s()[before:]
    assert 0.8 * most_s < max(watched) <= 1.1 * most_s
    # Afterwards, the slices are long again.
    simulation.clock.each_second = lambda: None
    simulation.sampler._answers = LineAnswers(None)
    simulation.run(13 * HOUR_S)
    assert max(simulation.lengths_s()[before + len(watched) :]) > 660.0
