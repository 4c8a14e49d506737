"""XProf in TensorBoard shows a trace that Teho made: the real packages, in Chromium."""

from __future__ import annotations

import re
import socket
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from browsers import ARGUMENTS, BROWSER
from profile_traces import path_of
from support import FRAMEWORKS, lacks_framework, wait_for
from teho.profile.summary import read_trace

pytestmark = pytest.mark.skipif(
    bool(lacks_framework("xprof") or lacks_framework("tensorboard")),
    reason=lacks_framework("xprof") or lacks_framework("tensorboard"),
)
STARTS_S = 120
"""TensorBoard imports large packages."""


@pytest.fixture
def tensorboard(
    teho: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> Iterator[str]:
    """Start TensorBoard as the command that Teho prints, and yield its address."""
    done = teho("profile", path_of("conv"), "--trace-to", tmp_path / "logs", env={"COLUMNS": "200"})
    match = re.search(r"`tensorboard (--logdir \S+)`", done.stdout)
    assert match, done.stdout
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [
        FRAMEWORKS / "bin" / "tensorboard", *match[1].split(), "--host", "127.0.0.1",
        "--port", str(port),
    ]  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        try:
            wait_for(lambda: _answers(address), STARTS_S)
            yield address
        finally:
            running.terminate()


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/data/plugins_listing", timeout=5) as answer:
            return b"profile" in answer.read()
    except OSError:
        return False


@pytest.fixture
def page() -> Iterator[Any]:
    """Open a page of Chromium that cannot reach other machines."""
    if BROWSER is None:
        pytest.skip("no Chromium is installed here")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=BROWSER, args=ARGUMENTS)
        opened = browser.new_page()
        opened.route(re.compile("^https:"), lambda route: route.abort())
        yield opened
        browser.close()


def test_xprof_shows_the_steps(tensorboard: str, page: Any) -> None:
    page.goto(f"{tensorboard}/#profile")

    def shown() -> str:
        page.wait_for_timeout(500)
        return "\n".join(
            frame.evaluate("document.body ? document.body.innerText : ''") for frame in page.frames
        )

    wait_for(lambda: "Device Compute Time" in shown(), STARTS_S)
    text = shown()
    assert "conv" in text
    match = re.search(r"Device Compute Time\s*\(. = [\d.]+ ms\)\s*([\d.]+) ms", text)
    assert match, text
    # XProf counts copies too.
    mean = read_trace(path_of("conv")).devices[0].mean
    assert float(match[1]) == pytest.approx(1000 * mean.busy_s, abs=0.06)
