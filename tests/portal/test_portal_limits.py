"""What one user, or one page, can ask of the portal at most; docs/portal.md promises these limits.

The limits on the size of a request, and on its time until it is complete, are in
`test_portal_attacks.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import http.client
import re
import shutil
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
from portal_process import PortalProcess, portal

from made_runs import make_run
from support import is_gone, wait_for
from teho.errors import RecordingError

pytest.importorskip("starlette", reason="teho[portal] is not installed")
pytest.importorskip("uvicorn", reason="teho[portal] is not installed")

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from teho.show.portal import computed, guard
from teho.show.portal.computed import Computed
from teho.show.portal.guard import Guard

EXAMPLE = Path(__file__).parents[2] / "examples/runs/one-idle-gpu"
RUN = "20261123-094500-one-aaaa"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[PortalProcess]:
    shutil.copytree(EXAMPLE, tmp_path / "home/runs" / RUN)
    with portal(tmp_path) as one:
        yield one


@contextlib.contextmanager
def streams(running: PortalProcess, count: int) -> Iterator[list[http.client.HTTPResponse]]:
    """Open pages that show live values."""
    opened = []
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            connection = running.connection()
            stack.callback(connection.close)
            connection.request("GET", "/events?shown=")
            answer = connection.getresponse()
            stack.callback(answer.close)
            assert answer.status == 200
            opened.append(answer)
        yield opened


def test_at_most_forty_pages_show_live_values(running: PortalProcess) -> None:
    with streams(running, 40):
        refused = running.ask("/events?shown=")
        assert refused.status == 503
        assert "too many pages show live values" in refused.text
        assert running.ask("/").status == 200, "pages are still answered"
    # A page that is closed makes room for another one.
    wait_for(lambda: _gets_events(running), 30)


def _gets_events(running: PortalProcess) -> bool:
    connection = running.connection()
    connection.request("GET", "/events?shown=")
    answer = connection.getresponse()
    connection.close()
    return answer.status == 200


def test_at_most_eighty_connections_are_open(running: PortalProcess) -> None:
    with streams(running, 40), contextlib.ExitStack() as stack:
        for _ in range(40):
            raw = stack.enter_context(socket.socket(socket.AF_UNIX))
            raw.connect(str(running.path))
            raw.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")  # it does not end
        assert running.ask("/").status == 503
    wait_for(lambda: running.ask("/").status == 200, 30)


def answer_of(app: Any) -> tuple[int, str, float]:
    """Ask an application for a page; return its status, its text, and the time in s."""
    parts: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        parts.append(message)

    async def ask() -> float:
        scope = {"type": "http", "method": "GET", "path": "/", "raw_path": b"/", "root_path": "",
                 "query_string": b"", "headers": [(b"host", b"localhost")], "scheme": "http",
                 "http_version": "1.1", "server": None, "client": None}  # fmt: skip
        began_s = time.monotonic()
        await app(scope, receive, send)
        return time.monotonic() - began_s

    took_s = asyncio.run(ask())
    (begin,) = (part for part in parts if part["type"] == "http.response.start")
    body = b"".join(part.get("body", b"") for part in parts)
    assert ("x-frame-options", "DENY") in [
        (key.decode(), value.decode()) for key, value in begin["headers"]
    ]
    return begin["status"], body.decode(), took_s


@pytest.mark.parametrize("kind", ["thread", "loop"])
def test_a_page_that_is_not_ready_in_time_is_given_up(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(guard, "_LONGEST_S", 0.3)
    ended = threading.Event()

    # As a page that waits for a file system: a thread, which cannot be interrupted.
    def of_thread(_request: Request) -> Response:
        ended.wait(3.0)
        return PlainTextResponse("too late")

    async def of_loop(_request: Request) -> Response:
        await asyncio.sleep(3.0)
        return PlainTextResponse("too late")

    slow = Starlette(routes=[Route("/", of_thread if kind == "thread" else of_loop)])
    threading.Timer(2.0, ended.set).start()
    status, text, took_s = answer_of(Guard(slow, None))
    assert (status, text) == (503, "This page was not ready after 0 s.\n")
    assert 0.3 <= took_s < 1.5, "it does not wait for the end of the page"
    quick = Starlette(routes=[Route("/", lambda _: PlainTextResponse("in time"))])
    assert answer_of(Guard(quick, None))[:2] == (200, "in time")


SLEEPS = ["sh", "-c", 'touch "$0/$$"; exec sleep 30']


def test_a_report_that_takes_too_long_is_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(computed, "_DEADLINE_S", 0.5)
    began_s = time.monotonic()
    with pytest.raises(RecordingError, match=r"the report did not answer within 0\.5 s"):
        Computed([*SLEEPS, str(tmp_path)]).report(EXAMPLE)
    assert time.monotonic() - began_s < 10
    (pid,) = (path.name for path in tmp_path.iterdir())
    wait_for(lambda: is_gone(int(pid)), 10)


def test_two_reports_are_computed_at_once_and_eight_wait(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(computed, "_DEADLINE_S", 1.0)
    reports = Computed([*SLEEPS, str(tmp_path)])
    refused: list[str] = []

    def ask(number: int) -> None:
        try:
            reports.report(tmp_path / f"run{number}")
        except RecordingError as error:
            refused.append(error.found)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(11)]
    for thread in threads:
        thread.start()
    wait_for(lambda: refused, 10)
    assert refused[0] == "too many reports are being computed"
    wait_for(lambda: len(list(tmp_path.iterdir())) >= 2, 10)
    seen = Counter(is_gone(int(path.name)) for path in tmp_path.iterdir())
    assert seen[False] <= 2
    for thread in threads:
        thread.join(60)
    assert len(list(tmp_path.iterdir())) == 10, "those that waited had their turn"
    assert len(refused) == 11
    assert len(set(refused)) == 2


def content_of(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Return mode, time of modification and content of each file and folder."""
    found = {}
    for path in sorted((folder, *folder.rglob("*"))):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        digest = hashlib.sha256(content).hexdigest()
        found[str(path.relative_to(folder))] = status.st_mode, status.st_mtime_ns, digest
    return found


def test_no_page_changes_a_file(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for run_id in (RUN, "20261123-094600-two-bbbb"):
        shutil.copytree(EXAMPLE, home / "runs" / run_id)
    for number in range(3):
        make_run(home, number, gpus=1, cluster="lumi", tags={"seed": "1"}, exit_code=number)
    before = content_of(home)
    seen: set[str] = set()
    with portal(tmp_path) as one:
        waiting = ["/", "/runs?by=program", f"/compare?run={RUN}&run=20261123-094600-two-bbbb",
                   "/plan?gpus=1&cluster=lumi&command=train.py&record=yes", "/nothing",
                   "/events?id=unknown"]  # fmt: skip
        kinds = Counter[str]()
        while waiting:
            address = waiting.pop()
            kind = address.partition("?")[0]
            if address in seen or kinds[kind] == 4:
                continue
            seen.add(address)
            kinds[kind] += 1
            page = one.ask(address)
            if page.headers.get("content-type", "").startswith("text/html"):
                found = re.findall(r'(?:href|src)="([^"#]+)"', page.text)
                waiting += [urljoin("/", unescape(link)) for link in found]
        # The verdicts come in the background.
        wait_for(lambda: "GPU never used" in one.ask("/runs").text, 60)
        assert set(kinds) >= {"/", "/runs", "/run", "/compare", "/usage", "/clusters", "/cluster",
                              "/plan", "/file", "/nothing", "/events"}  # fmt: skip
    assert content_of(home) == before
