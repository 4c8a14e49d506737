"""Verdicts that the portal computes in the background: each once, and of running runs rarely."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import aclosing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support import wait_for
from teho.errors import RecordingError
from teho.model.listed_run import Judged, ListedRun
from teho.show.portal import judging
from teho.show.portal.judging import Judging

RUNS = [
    ListedRun(
        runs="/nowhere", id=f"20261101-{number:06d}-train-aaaa", outcome="running",
        began_s=1_800_000_000.0, elapsed_s=None, name="", command="python train.py", tags={},
        user="maija", host="g1", cluster="", partition="", account="", gpu="", gpus=1, nodes=1,
        tasks=1, job_id="",
    )
    for number in range(30)
]  # fmt: skip


class Recorded:
    """In place of the process that computes verdicts: notes what it is asked for."""

    def __init__(self, time_s: float = 0.0, damaged: str = "") -> None:
        self.counts: Counter[str] = Counter()
        self.calls: list[int] = []
        self._time_s, self._damaged = time_s, damaged

    def judge(self, directories: Sequence[Path]) -> list[Judged]:
        time.sleep(self._time_s)
        self.calls.append(len(directories))
        self.counts.update(one.name for one in directories)
        if self._damaged in {one.name for one in directories}:
            raise RecordingError("damaged")
        return [Judged(severity="warning", verdict="slow") for _ in directories]

    def renew_changed(self, runs: list[ListedRun]) -> None:
        """No description has changed."""


@contextmanager
def judged_by(computed: Any) -> Iterator[Judging]:
    found = Judging(computed, computed)
    yield found
    found.stop()


def test_a_running_run_that_is_asked_for_several_times_is_judged_once() -> None:
    computed = Recorded()
    with judged_by(computed) as one:
        for _ in range(5):
            one.ask(RUNS)
        one.start()
        wait_for(lambda: not one._waiting)
        one.ask(RUNS)
        wait_for(lambda: not one._waiting and len(computed.counts) == len(RUNS))
        time.sleep(1)
        assert set(computed.counts.values()) == {1}
        assert computed.calls == [10, 10, 10]
        assert all(one.of_running(run) for run in RUNS)


def test_running_runs_are_judged_again_in_a_small_share_of_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(judging, "_RUNNING_FRESH_S", 0.01)
    monkeypatch.setattr(judging, "_RUNNING_SHARE", 0.1)
    computed = Recorded(time_s=0.1)
    with judged_by(computed) as one:
        one.start()
        began_s = time.monotonic()
        while time.monotonic() - began_s < 8:
            one.ask(RUNS)
            time.sleep(0.05)
        # The first verdicts come at once; after them, each call is followed by a pause of 1 s.
        again = len(computed.calls) - 3
        assert 3 <= again <= 9
        # No run waits longer than the others.
        counts = [computed.counts[run.id] for run in RUNS]
        assert max(counts) - min(counts) <= 1


class Changing(Recorded):
    """Gives another verdict each time."""

    def judge(self, directories: Sequence[Path]) -> list[Judged]:
        super().judge(directories)
        return [Judged(severity="warning", verdict=f"Call {len(self.calls)}.")]


def test_the_page_of_a_running_run_gets_each_new_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("starlette", reason="teho[portal] is not installed")
    from teho.show.portal import events
    from teho.show.portal.live import Live, _Newest

    monkeypatch.setattr(judging, "_RUNNING_FRESH_S", 0.0)
    monkeypatch.setattr(judging, "_RUNNING_SHARE", 1.0)
    monkeypatch.setattr(events, "_LISTED_S", 0.0)
    monkeypatch.setattr(events, "_TICK_S", 0.01)
    watched: Any = SimpleNamespace(newest=_Newest(), after=lambda _: [])

    async def sentences(one: Judging) -> list[str]:
        streams = events.Streams(Live(), list, bool, one)
        found: list[str] = []
        async with aclosing(streams.of_run(RUNS[0], watched, 0)) as parts:
            async for part in parts:
                if b"event: verdict" in part:
                    found.append(json.loads(part.partition(b"data: ")[2])["sentence"])
                if len(found) == 3:
                    break
        return found

    with judged_by(Changing()) as one:
        one.start()
        found = asyncio.run(asyncio.wait_for(sentences(one), 60))
    assert found == ["Call 1.", "Call 2.", "Call 3."]


def test_a_running_run_that_cannot_be_judged_is_not_tried_all_the_time() -> None:
    computed = Recorded(damaged=RUNS[3].id)
    with judged_by(computed) as one:
        one.start()
        for _ in range(5):
            one.ask(RUNS[:5])
            wait_for(lambda: not one._waiting)
            time.sleep(0.5)
        assert one.of_running(RUNS[3]) is None
        assert all(one.of_running(run) for run in (*RUNS[:3], RUNS[4]))
        # Once with the others, and once by itself.
        assert computed.counts[RUNS[3].id] == 2
