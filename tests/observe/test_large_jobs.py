"""The recorders of a large job do not burden the file system all at once."""

from __future__ import annotations

import time
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import msgspec
import pytest

from teho.model.run import FORMAT_VERSION, Node, Run, Step
from teho.observe import recorder as recorder_module
from teho.observe import recording as recording_module
from teho.observe.program import Outcome
from teho.observe.recorder import Recorder
from teho.observe.recording import Recording, await_others
from teho.observe.run_changes import seal_spread_s

NOW = datetime(2026, 11, 27, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("node_count", "spread_s"),
    [(1, 0.0), (99, 0.0), (100, 0.4), (1000, 4.0), (1250, 5.0), (9000, 5.0)],
)
def test_only_many_recorders_seal_at_different_times(node_count: int, spread_s: float) -> None:
    assert seal_spread_s(node_count) == pytest.approx(spread_s)


def sealed_after_s(
    node: str, node_count: int, monkeypatch: pytest.MonkeyPatch, *, is_warned: bool = False
) -> float:
    """Return how long a recorder waits before it seals."""
    waits: list[float] = []
    sealed: list[tuple[Path, str]] = []
    monkeypatch.setattr(recorder_module, "seal", lambda *what: sealed.append(what))
    monkeypatch.setattr(recorder_module.time, "sleep", waits.append)
    recorder: Any = object.__new__(Recorder)
    recorder._plan = SimpleNamespace(run=Path("run"), node=node, node_count=node_count)
    recorder._recorder_end = SimpleNamespace(is_warned=is_warned)
    recorder._seal()
    assert sealed == [(Path("run"), node)]
    return sum(waits)


def test_the_recorders_of_a_large_job_seal_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits = [sealed_after_s(f"n{number:04d}", 1250, monkeypatch) for number in range(1250)]
    in_each_second = [sum(int(wait_s) == second for wait_s in waits) for second in range(5)]
    assert sum(in_each_second) == 1250
    assert max(in_each_second) < 1.3 * 250


def test_a_recorder_that_may_be_killed_seals_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sealed_after_s("n0007", 1250, monkeypatch) > 0
    assert sealed_after_s("n0007", 1250, monkeypatch, is_warned=True) == 0
    assert sealed_after_s("n0007", 64, monkeypatch) == 0


def first_rows_s(node: str, node_count: int) -> float:
    """Return when a recorder writes its first rows. Only its waiting moves its clock."""
    clock, written = [0.0], []

    def wait(wait_s: float) -> None:
        clock[0] += wait_s

    recorder = MagicMock(_stacks=None, _spool=None, _traces=None, _is_warned=False)
    recorder._plan = SimpleNamespace(period_s=1.0, node=node, node_count=node_count)
    recorder._add_peers.return_value = False
    recorder._elapsed.side_effect = lambda: clock[0]
    recorder._wait.side_effect = wait
    recorder._flush.side_effect = lambda: written.append(clock[0])
    recorder._is_finished.side_effect = lambda: bool(written)
    Recorder.run(recorder)
    (first_s,) = written
    return first_s


def test_the_recorders_of_a_large_job_write_their_first_rows_one_after_the_other() -> None:
    in_each_second = Counter(first_rows_s(f"n{number:04d}", 1250) for number in range(250))
    assert sorted(in_each_second) == [float(second) for second in range(1, 11)]
    assert max(in_each_second.values()) < 1.5 * 250 / 10
    assert first_rows_s("n0007", 99) == 1.0


@pytest.mark.parametrize(("nodes", "most"), [(2, 60), (1250, 6)])
def test_the_first_task_asks_seldom_whether_many_others_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nodes: int, most: int
) -> None:
    step = Step(key="k", started_by="Slurm", began_on="n0", task_count=2, node_count=nodes)
    one = Node(name="n0", started_at=NOW, period_s=1.0)
    run = Run(
        format=FORMAT_VERSION, id="r", name="", command=("a",), started_at=NOW, host="n0", step=step
    )
    whole = msgspec.structs.replace(
        run, nodes=tuple(msgspec.structs.replace(one, name=f"n{n}") for n in range(nodes))
    )
    asked, clock = [], [0.0]

    def sleep(pause_s: float) -> None:
        clock[0] += pause_s

    monkeypatch.setattr(recording_module, "with_parts", lambda *_: (asked.append(1), whole)[1])
    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    outcome = Outcome(1.0, 0, None, 0.0, 0)
    await_others(Recording(tmp_path, run, None, began=True), outcome)
    assert 3 <= len(asked) <= most
    assert clock[0] == pytest.approx(5.0 + seal_spread_s(nodes))
