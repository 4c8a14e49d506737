"""Following a job: states as they change, the log as it grows, and no end without one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from teho.errors import NoAnswerError, RefusedError
from teho.model.job import Job, JobState, Submission
from teho.schedulers import follow as follow_module
from teho.schedulers.follow import follow

# Every log that a test writes is younger.
NOW = datetime(2020, 11, 20, 12, 0, tzinfo=timezone.utc)


def job(state: JobState, **facts: object) -> Job:
    return Job(id="7", number="7", state=state, **facts)  # type: ignore[arg-type]


def submission(**facts: object) -> Submission:
    return Submission(
        mark="teho=a",
        scheduler="slurm",
        cluster="puhti",
        job="7",
        directory="/",
        script="/job.sh",
        **{"submitted_at": NOW, **facts},  # type: ignore[arg-type]
    )


class World:
    """A scheduler that answers as it is told, a clock that sleeping moves, and a log."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, log: Path, answers: Sequence[object]
    ) -> None:
        self.now_s = 0.0
        self.asked_s: list[float] = []
        self.log = log
        self._answers: Iterator[object] = iter(answers)
        self._last: object = None
        monkeypatch.setattr(follow_module, "states", self.states)

    def states(
        self, _backend: object, numbers: Sequence[str], since: Mapping[str, datetime]
    ) -> dict[str, tuple[Job, ...]]:
        assert since == {numbers[0]: NOW}
        self.asked_s.append(self.now_s)
        self._last = answer = next(self._answers, self._last)
        if callable(answer):
            answer = answer()
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, tuple)
        return {numbers[0]: answer}

    def log_path(self, _submission: Submission, _job: Job) -> Path:
        return self.log

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def events(self, **facts: object) -> list[object]:
        return list(
            follow(
                self,  # type: ignore[arg-type]
                submission(**facts),
                sleep=self.sleep,
                clock=lambda: self.now_s,
            )
        )


def test_states_are_shown_once_each_and_the_log_as_it_grows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = tmp_path / "slurm-7.out"

    def grows(text: bytes, jobs: tuple[Job, ...]) -> object:
        def answer() -> tuple[Job, ...]:
            with log.open("ab") as file:
                file.write(text)
            return jobs

        return answer

    waiting = (job(JobState.PENDING, reason="Resources"),)
    running, done = (job(JobState.RUNNING, node_list="n1"),), (job(JobState.COMPLETED),)
    world = World(
        monkeypatch,
        log,
        [waiting, waiting, grows(b"one\n", running), grows(b"tw", running), grows(b"o\n", done)],
    )
    events = world.events()
    assert [event for event in events if not isinstance(event, bytes)] == [waiting, running, done]
    assert b"".join(event for event in events if isinstance(event, bytes)) == b"one\ntwo\n"
    assert events.index(running) < events.index(b"one\n") < events.index(done)


def test_a_log_that_begins_again_is_read_from_its_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"first attempt\n")

    def restart() -> tuple[Job, ...]:
        log.write_bytes(b"again\n")
        return (job(JobState.COMPLETED),)

    world = World(monkeypatch, log, [(job(JobState.RUNNING),), restart])
    assert b"".join(e for e in world.events() if isinstance(e, bytes)) == b"first attempt\nagain\n"


def test_a_scheduler_is_asked_ever_more_rarely_and_at_least_twice_a_minute(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    waiting = (job(JobState.PENDING),)
    world = World(monkeypatch, tmp_path / "no", [*[waiting] * 20, (job(JobState.COMPLETED),)])
    world.events()
    pauses = [later - sooner for sooner, later in zip(world.asked_s, world.asked_s[1:])]  # noqa: B905
    assert pauses[0] < 2
    assert pauses == sorted(pauses)
    assert 29 < pauses[-1] <= 30


def test_a_scheduler_that_is_away_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    running, done = (job(JobState.RUNNING),), (job(JobState.COMPLETED),)
    away = [NoAnswerError("away")] * 30
    world = World(monkeypatch, tmp_path / "no", [running, *away, done])
    assert world.events() == [running, done]


def test_a_refusal_ends_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    world = World(monkeypatch, tmp_path / "no", [RefusedError("no permission")])
    with pytest.raises(RefusedError):
        world.events()


def test_a_job_that_is_nowhere_is_waited_for_and_then_given_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    nowhere = (job(JobState.UNKNOWN),)
    world = World(monkeypatch, tmp_path / "no", [(job(JobState.RUNNING),), nowhere])
    assert world.events()[-1] == nowhere
    assert 60 <= world.now_s < 120


def test_an_array_ends_with_its_last_task(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"of one task")

    def tasks(*states: JobState) -> tuple[Job, ...]:
        return tuple(
            Job(id=f"7_{i}", number="7", task=str(i), state=state) for i, state in enumerate(states)
        )

    half = tasks(JobState.COMPLETED, JobState.RUNNING)
    whole = tasks(JobState.COMPLETED, JobState.FAILED)
    world = World(monkeypatch, log, [half, whole])
    assert world.events(array="0-1") == [half, whole]


def _tasks(**states: JobState) -> tuple[Job, ...]:
    return tuple(
        Job(id=f"7.{index[1:]}", number="7", task=index[1:], state=state)
        for index, state in states.items()
    )


def test_a_task_that_the_accounting_has_last_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    running = _tasks(_1=JobState.COMPLETED, _2=JobState.RUNNING)
    late, whole = _tasks(_1=JobState.COMPLETED), _tasks(_1=JobState.COMPLETED, _2=JobState.FAILED)
    world = World(monkeypatch, tmp_path / "no", [running, late, late, whole])
    assert world.events(array="1-2") == [running, whole]


def test_a_task_in_no_list_is_shown_as_not_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    world = World(monkeypatch, tmp_path / "no", [_tasks(_1=JobState.COMPLETED)])
    (found,) = world.events(array="1-2")
    assert isinstance(found, tuple)
    assert [(one.task, one.state) for one in found] == [
        ("1", JobState.COMPLETED),
        ("2", JobState.UNKNOWN),
    ]
    assert 60 <= world.now_s < 120


def test_the_log_of_an_earlier_job_is_not_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(b"of an earlier job\n")
    os.utime(log, (NOW.timestamp() - 60, NOW.timestamp() - 60))

    def begins() -> tuple[Job, ...]:
        log.write_bytes(b"mine\n")
        return (job(JobState.COMPLETED),)

    world = World(monkeypatch, log, [(job(JobState.PENDING),), (job(JobState.RUNNING),), begins])
    assert b"".join(e for e in world.events() if isinstance(e, bytes)) == b"mine\n"


def test_the_state_is_shown_before_the_first_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    waiting, running, done = map(job, (JobState.PENDING, JobState.RUNNING, JobState.COMPLETED))

    def starts_at_once() -> tuple[Job, ...]:
        log.write_bytes(b"line\n")
        return (waiting,)

    world = World(monkeypatch, log, [starts_at_once, (running,), (done,)])
    assert world.events() == [(waiting,), (running,), b"line\n", (done,)]


def test_a_job_between_queue_and_accounting_is_not_shown_as_lost(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    running, nowhere, done = map(job, (JobState.RUNNING, JobState.UNKNOWN, JobState.COMPLETED))
    world = World(monkeypatch, tmp_path / "no", [(running,), (nowhere,), (nowhere,), (done,)])
    assert world.events() == [(running,), (done,)]


def test_a_state_that_teho_does_not_know_is_followed_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    odd, done = job(JobState.UNKNOWN, state_as_written="EVOLVING"), job(JobState.COMPLETED)
    world = World(monkeypatch, tmp_path / "no", [*[(odd,)] * 20, (done,)])
    assert world.events() == [(odd,), (done,)]
    assert world.now_s > 120


def test_an_expected_start_that_drifts_is_no_news(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    drifting = [
        (job(JobState.PENDING, expected_start_at=NOW + timedelta(seconds=i)),) for i in range(40)
    ]
    world = World(monkeypatch, tmp_path / "no", [*drifting, (job(JobState.COMPLETED),)])
    assert len(world.events()) == 2
    assert world.asked_s[-1] - world.asked_s[-2] > 29
