"""The lines in which Python processes are, while a viewer watches: the sampler's answers."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support import wait_for
from teho.model.live import LineNow, ProcessNow
from teho.model.stack import Frame, State
from teho.observe.present_lines import LineAnswers, LineQuestions, with_lines
from teho.observe.spool import with_probe
from teho.observe.stack_sampling import StackSampling

LINE = LineNow(
    frames=(Frame("/lib/x.py", "read", 3, "read(1)"), Frame("/home/ann/a.py", "f", 7, "g()")),
    state=State.DISK,
    stayed_s=4.5,
)
PROGRAM = """\
import sys, threading
def work(lock):
    lock.acquire()
lock = threading.Lock()
lock.acquire()
print("ready", flush=True)
work(lock)
"""


@pytest.fixture
def ends() -> Iterator[tuple[LineQuestions, LineAnswers]]:
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, its:
        yield LineQuestions(ours), LineAnswers(its)


def test_without_a_question_there_is_no_answer(ends: tuple[LineQuestions, LineAnswers]) -> None:
    _, answers = ends
    assert not answers.is_due(100.0)
    assert not answers.is_watched(100.0)


def test_after_a_question_there_is_an_answer_each_second_for_a_while(
    ends: tuple[LineQuestions, LineAnswers],
) -> None:
    questions, answers = ends
    assert questions.ask(100.0) == {}
    assert answers.is_due(100.0)
    answers.send(100.0, {7: LINE})
    assert questions.ask(100.2) == {7: LINE}
    assert not answers.is_due(100.5)
    assert answers.is_due(101.0)  # the second question
    later = [answers.is_due(101.0 + second) for second in range(1, 20)]
    assert later == [True] * 9 + [False] * 10


def test_an_old_answer_is_not_the_present(ends: tuple[LineQuestions, LineAnswers]) -> None:
    questions, answers = ends
    answers.send(100.0, {7: LINE})
    assert questions.ask(104.0) == {7: LINE}
    assert questions.ask(106.0) == {}


def test_answers_that_are_not_read_are_lost_and_do_not_block(
    ends: tuple[LineQuestions, LineAnswers],
) -> None:
    _, answers = ends
    for second in range(2000):
        answers.send(100.0 + second, {7: LINE})


def test_a_sampler_that_has_ended_has_no_answer() -> None:
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    its.close()
    with ours:
        assert LineQuestions(ours).ask(100.0) == {}


def test_only_the_sampled_processes_get_a_line() -> None:
    sampled, other = (
        ProcessNow(pid=pid, parent=1, command="python a.py", resident_bytes=1, threads=1)
        for pid in (7, 8)
    )
    assert [one.line for one in with_lines([sampled, other], {7: LINE})] == [LINE, None]


@pytest.fixture
def program(tmp_path: Path) -> Iterator[tuple[StackSampling, int, Path]]:
    """A sampler, and a program that waits for a lock for ever."""
    (tmp_path / "above").mkdir(mode=0o700)
    spool = str(tmp_path / "above" / "probe")
    script = tmp_path / "waits.py"
    script.write_text(PROGRAM)
    sampling = StackSampling(spool, cores=os.cpu_count() or 1)
    process = subprocess.Popen(
        [sys.executable, str(script)], env=with_probe(dict(os.environ), spool),
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield sampling, process.pid, script
    finally:
        process.kill()
        process.communicate()
        sampling.stop()


def asked(sampling: StackSampling, pid: int) -> Callable[[], LineNow | None]:
    return lambda: sampling.lines(time.monotonic()).get(pid)


def test_the_line_of_a_real_program(program: tuple[StackSampling, int, Path]) -> None:
    sampling, pid, script = program
    ask = asked(sampling, pid)
    wait_for(lambda: (line := ask()) is not None and line.stayed_s > 0.5)
    line = ask()
    assert line is not None
    # `lock.acquire` is not a Python function: the innermost function is the program's own.
    (frame,) = line.frames
    assert frame == Frame(str(script), "work", 3, frame.text)
    assert frame.text.startswith("lock.acquire()")
    assert line.state is State.LOCK
    before_s = line.stayed_s
    wait_for(lambda: (line := ask()) is not None and line.stayed_s > before_s + 0.5)


def test_after_the_end_there_are_no_lines(program: tuple[StackSampling, int, Path]) -> None:
    sampling, pid, _ = program
    ask = asked(sampling, pid)
    wait_for(lambda: ask() is not None)
    sampling.stop()
    assert ask() is None
