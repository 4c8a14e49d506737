"""Sends recordings to a store, part by part, and continues after the last part that it has."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec

from teho.errors import StoreBusyError, StoreError
from teho.jobs.export.formats import FORMATS, Format
from teho.jobs.export.lock import locked
from teho.jobs.export.openmetrics import Recorded
from teho.jobs.export.parts import Part, parts_of
from teho.jobs.http import Store, request
from teho.store.layout import replace_file
from teho.units import format_duration

__all__ = ["Pushed", "push"]

_FOLDER = "exports"
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Pushed(NamedTuple):
    """What an export did."""

    values: int
    """Values that were sent."""
    runs: int
    """Runs of which values were sent."""


class _Progress(msgspec.Struct):
    """What a store has of a run: a small file, written by `teho export`."""

    store: str
    until_ms: dict[str, int] = {}
    """Node -> time of the last values that the store has accepted, in ms since 1970."""
    unclear: tuple[str, int] | None = None
    """Node and last time of the part that was sent without an answer, if the export ended then."""
    is_complete: bool = False
    """Whether the run has ended, and the store has all its values."""


def push(
    recordings: Sequence[Recorded],
    store: Store,
    form: str,
    home: Path,
    wait_s: float,
    problems: list[str],
    report: Callable[[str], None] = lambda _: None,
) -> Pushed:
    """Send all values that the store does not have.

    Args:
        recordings: to send.
        store: the store.
        form: name of the format.
        home: the directory of all recordings; the progress is stored there.
        wait_s: how long to try if the store does not answer, or if another export sends to it.
        problems: gets a sentence for each file that cannot be read, and for runs that overlap.
        report: gets a sentence before each wait for the store.

    Raises:
        StoreError: the store refuses, or does not answer within `wait_s`. What it has accepted is
            stored, and the next call continues there.
        OSError: the progress cannot be written.
    """
    name = sha256(f"{form} {store.address}".encode()).hexdigest()[:16]
    folder = home / _FOLDER / name
    ordered = sorted(recordings, key=lambda recorded: recorded.run.started_at)
    problems.extend(_overlaps(ordered))
    with locked(folder, store.host, wait_s, report):
        return _push(ordered, store, FORMATS[form], folder, wait_s, problems, report)


def _push(
    ordered: Sequence[Recorded],
    store: Store,
    format_: Format,
    folder: Path,
    wait_s: float,
    problems: list[str],
    report: Callable[[str], None],
) -> Pushed:
    values = runs = 0
    for recorded in ordered:
        path = folder / f"{recorded.run.id}.json"
        progress = _read(path, store)
        if progress.is_complete:
            continue
        lost, before, wrong = progress.unclear, values, list[str]()
        again = dict([lost] if lost else [])
        parts = parts_of(recorded, progress.until_ms, wrong, format_.values, again)
        with closing(_encoded(parts, format_)) as encoded:
            for part, body in encoded:
                place = (part.node, part.until_ms)
                if place != lost or not _has(store, format_, part):
                    # If this process is killed before the answer, the next one asks the store.
                    progress.unclear = place
                    _write(path, progress)
                    _send(store, format_, part, body, wait_s, report)
                    values += part.value_count
                progress.unclear = None
                progress.until_ms[part.node] = part.until_ms
                _write(path, progress)
        if recorded.run.end is not None:
            # The end of a file of a running run cannot be read: that is not a problem.
            problems.extend(wrong)
            progress.is_complete = not wrong
            _write(path, progress)
        runs += values > before
    return Pushed(values, runs)


def _encoded(parts: Iterator[Part], format_: Format) -> Generator[tuple[Part, bytes], None, None]:
    """Yield each part with its bytes. The next parts are made while the store takes this one."""
    waiting: deque[tuple[Part, Future[bytes]]] = deque()
    with ThreadPoolExecutor(format_.threads) as pool:
        for part in parts:
            waiting.append((part, pool.submit(format_.encode, part.series)))
            if len(waiting) > format_.threads:
                made, later = waiting.popleft()
                yield made, later.result()
        for made, later in waiting:
            yield made, later.result()


def _read(path: Path, store: Store) -> _Progress:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Progress)
    except (OSError, ValueError):
        return _Progress(store.host)


def _write(path: Path, progress: _Progress) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(path, msgspec.json.encode(progress))


def _overlaps(ordered: Sequence[Recorded]) -> list[str]:
    """Return a sentence for two runs on the same node at the same time: they share its series."""
    found = []
    for first, second in pairwise(ordered):
        nodes = {node.name for node in first.run.nodes} & {node.name for node in second.run.nodes}
        end = first.run.end
        if nodes and end is not None and second.run.started_at < end.at:
            found.append(
                f"the runs {first.run.id} and {second.run.id} were on {min(nodes)} at the same "
                "time: the store has one series for the values of this node, so these are mixed"
            )
    return found


def _send(
    store: Store,
    format_: Format,
    part: Part,
    body: bytes,
    wait_s: float,
    report: Callable[[str], None],
) -> None:
    """Send a part until the store has accepted it.

    Raises:
        StoreError: the store refuses the part, or does not answer in time.
    """
    end_s, pause_s, is_reported = time.monotonic() + wait_s, _FIRST_PAUSE_S, False
    while True:
        try:
            format_.check(request(store, format_.path, body, format_.headers))
        except StoreBusyError as error:
            rest_s = end_s - time.monotonic()
            if rest_s <= 0:
                raise StoreBusyError(
                    error.found,
                    error.expected,
                    f"{error.next_step}: it continues after the last part that the store has",
                ) from error
            if not is_reported:
                report(f"{error.found}. Teho tries again for {format_duration(wait_s)}")
                is_reported = True
            time.sleep(min(pause_s, rest_s))
            # The store may have accepted the part before its answer was lost.
            if _has(store, format_, part):
                return
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        except StoreError as error:
            if "out of order" in error.found or "out of bounds" in error.found:
                raise StoreError(
                    error.found,
                    "a store that accepts old values",
                    "set out_of_order_time_window in the configuration of Prometheus, or use "
                    "`teho export --to openmetrics` and promtool",
                ) from error
            raise
        else:
            return


def _has(store: Store, format_: Format, part: Part) -> bool:
    """Return whether the store has the last value of a part; False if it cannot be asked.

    A store accepts a request as a whole or not at all. To send a part again does no harm in
    Prometheus, but VictoriaMetrics would have its values twice.
    """
    if not format_.can_be_queried or not part.series:
        return False
    last = part.series[-1]
    matchers = "".join(f",{name}={msgspec.json.encode(text).decode()}"
                       for name, text in last.labels.items())  # fmt: skip
    at_s = last.times_ms[-1].as_py() / 1000
    query = f'{{__name__="{last.name}"{matchers}}}[1s]'
    body = urlencode({"query": query, "time": f"{at_s:.3f}"}).encode()
    if format_.flush:
        with suppress(StoreError):
            request(store, format_.flush, method="GET")
    try:
        answer = request(store, "/api/v1/query", body, _FORM)
        results = msgspec.json.decode(answer)["data"]["result"]
        return any(abs(float(at) - at_s) < 1e-3 for one in results for at, _ in one["values"])
    except (StoreError, ValueError, KeyError, TypeError):
        return False
