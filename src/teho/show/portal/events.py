"""Streams of events: live values for the pages of a run and of all running runs."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence

import msgspec
from starlette.concurrency import run_in_threadpool

from teho.model.listed_run import ListedRun
from teho.show.portal.judging import Judging
from teho.show.portal.live import Live, Watched
from teho.show.portal.rows import row_of

__all__ = ["Streams"]

_MOST = 40
"""Streams at the same time."""
_LONGEST_S = 3600.0
"""A browser connects again after this time."""
_TICK_S = 0.5
_HOME_TICK_S = 1.5
"""Time until the home page gets its figures again, also if there are no new samples."""
_LOOK_S = 0.1
_LISTED_S = 4.0
"""Time until the portal looks again which runs continue, and has old verdicts renewed."""
_BEGIN = b"retry: 2000\n\n"
"""A browser connects again 2 s after an interruption."""


class Streams:
    """All open streams.

    Args:
        live: receives the samples.
        running: returns the runs that continue.
        are_judged: returns whether all runs with these ids have a verdict.
        judging: has the newest verdicts of the runs that continue.
    """

    def __init__(
        self,
        live: Live,
        running: Callable[[], Sequence[ListedRun]],
        are_judged: Callable[[set[str]], bool],
        judging: Judging,
    ) -> None:
        self._live = live
        self._running = running
        self._are_judged = are_judged
        self._judging = judging
        self._count = 0
        self._ending = asyncio.Event()

    @property
    def are_full(self) -> bool:
        """Whether no more stream is allowed."""
        return self._count >= _MOST

    def end(self) -> None:
        """End all streams soon, so that the server can end."""
        self._ending.set()

    async def counted(self, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the parts of a stream; it counts as open until its end."""
        self._count += 1
        try:
            async for part in stream:
                yield part
        finally:
            self._count -= 1

    async def of_run(self, run: ListedRun, watched: Watched, after: int) -> AsyncIterator[bytes]:
        """Yield the samples after the one with a number, then each new sample and verdict.

        Args:
            run: the run.
            watched: its samples.
            after: the number.
        """
        end_s = time.monotonic() + _LONGEST_S
        asked_s = float("-inf")
        shown: object = None
        verdict: dict[str, str] = {}
        yield _BEGIN
        while time.monotonic() < end_s and not self._ending.is_set():
            newest = watched.newest
            if newest is not shown:
                shown = newest
                now = await run_in_threadpool(newest.for_page)
                yield _event("now", msgspec.json.encode(now))
            for event in watched.after(after):
                after = event.number
                yield _event("sample", event.data, event.number)
            if newest.ended:
                yield _event("ended", b"{}")
                return
            if time.monotonic() - asked_s >= _LISTED_S:
                asked_s = time.monotonic()
                self._judging.ask([run])
            if (found := self._verdict(run)) != verdict:
                verdict = found
                yield _event("verdict", msgspec.json.encode(verdict))
            await self._pause(_TICK_S)

    async def of_home(self, shown: set[str], unjudged: set[str]) -> AsyncIterator[bytes]:
        """Yield the figures of all runs that continue; `changed` if the page is not up to date.

        Args:
            shown: the ids of the running runs that the page shows.
            unjudged: the ids of the runs that it shows without a verdict.
        """
        end_s = time.monotonic() + _LONGEST_S
        running: Sequence[ListedRun] = ()
        listed_s = float("-inf")
        yield _BEGIN
        while time.monotonic() < end_s and not self._ending.is_set():
            if time.monotonic() - listed_s >= _LISTED_S:
                listed_s = time.monotonic()
                running = await run_in_threadpool(self._running)
                if {run.id for run in running} != shown or (
                    unjudged and await run_in_threadpool(self._are_judged, unjudged)
                ):
                    yield _event("changed", b"{}")
                    return
            rounds = self._live.rounds
            facts = await run_in_threadpool(self._facts, running)
            yield _event("runs", msgspec.json.encode(facts))
            # New samples are sent at once, so that they are not older than they have to be.
            tick_s = min(end_s, time.monotonic() + _HOME_TICK_S)
            while self._live.rounds == rounds and time.monotonic() < tick_s:
                await self._pause(_LOOK_S)
                if self._ending.is_set():
                    return

    def _facts(self, running: Sequence[ListedRun]) -> dict[str, dict[str, str]]:
        found = self._live.facts_of(running)
        return {
            run.id: {**found[run.id], **self._verdict(run)} for run in running if run.id in found
        }

    def _verdict(self, run: ListedRun) -> dict[str, str]:
        """Return the newest verdict of a run as text; empty if there is none yet."""
        judged = self._judging.of_running(run)
        if judged is None:
            return {}
        row = row_of(run, judged)
        return {
            "tone": row.tone,
            "mark": row.mark,
            "sentence": row.sentence.replace("`", ""),
            "pace": row.pace,
        }

    async def _pause(self, seconds: float) -> None:
        """Wait, but not after the end of the server was asked for."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._ending.wait(), seconds)


def _event(name: str, data: bytes, number: int | None = None) -> bytes:
    cursor = b"" if number is None else b"id: %d\n" % number
    return cursor + b"event: %s\ndata: %s\n\n" % (name.encode(), data)
