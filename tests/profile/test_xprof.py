"""XProf in TensorBoard shows a trace that Teho made: the real packages, in Chromium."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import teho as package
from browsers import ARGUMENTS, BROWSER
from profile_traces import path_of
from sshd import lacking, server
from support import FRAMEWORKS, lacks_framework, wait_for
from teho.process.listen import user_at_host
from teho.profile.summary import read_trace

pytestmark = pytest.mark.skipif(
    bool(lacks_framework("xprof") or lacks_framework("tensorboard")),
    reason=lacks_framework("xprof") or lacks_framework("tensorboard"),
)
Call = Callable[..., subprocess.CompletedProcess[str]]
SOURCES = str(Path(package.__file__).parents[1])
STARTS_S = 120
"""TensorBoard imports large packages."""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextmanager
def tensorboard(printed: str) -> Iterator[str]:
    """Start TensorBoard as the command that Teho prints, and yield its address."""
    match = re.search(r"`tensorboard (--logdir \S+)`", printed)
    assert match, printed
    port = free_port()
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


@contextmanager
def forwarded(printed: str, address: str, folder: Path) -> Iterator[str]:
    """Start the `ssh` command that Teho prints, and yield TensorBoard's address on the other side.

    Only the host and the two ports are others.
    """
    match = re.search(r"`(ssh [^`]+)`", printed)
    assert match, printed
    port = free_port()
    reached = f"http://localhost:{port}"
    ports = f"{port}:localhost:{address.rpartition(':')[2]}"
    others = {"6006:localhost:6006": ports, user_at_host(): "cluster"}
    command = [others.pop(word, word) for word in shlex.split(match[1])]
    assert not others, command
    folder.mkdir()
    with (
        server(folder) as cluster,
        subprocess.Popen(command, env={**os.environ, **cluster.environment}) as tunnel,
    ):
        try:
            wait_for(lambda: tunnel.poll() is not None or _answers(reached), STARTS_S)
            assert tunnel.poll() is None
            yield reached
        finally:
            tunnel.terminate()


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


def text_of(page: Any) -> str:
    page.wait_for_timeout(500)
    return "\n".join(
        frame.evaluate("document.body ? document.body.innerText : ''") for frame in page.frames
    )


@pytest.mark.skipif(bool(lacking()), reason=lacking() or "nothing is lacking")
def test_xprof_shows_the_steps_over_ssh(teho: Call, tmp_path: Path, page: Any) -> None:
    done = teho(
        "profile", path_of("conv"), "--trace-to", tmp_path / "logs",
        env={"COLUMNS": "200", "SSH_CONNECTION": "10.0.0.1 5 10.0.0.2 22"},
    )  # fmt: skip
    with (
        tensorboard(done.stdout) as cluster,
        forwarded(done.stdout, cluster, tmp_path / "sshd") as address,
    ):
        page.goto(f"{address}/#profile")
        wait_for(lambda: "Device Compute Time" in text_of(page), STARTS_S)
        text = text_of(page)
    assert "conv" in text
    match = re.search(r"Device Compute Time\s*\(. = [\d.]+ ms\)\s*([\d.]+) ms", text)
    assert match, text
    # XProf counts copies too.
    mean = read_trace(path_of("conv")).devices[0].mean
    assert float(match[1]) == pytest.approx(1000 * mean.busy_s, abs=0.06)


JAX = """
import jax, jax.numpy as jnp, teho
@jax.jit
def step(x): return jnp.tanh(x @ x) / 10
x = jnp.ones((50, 50))
for number in range(1, 12):
    with jax.profiler.TraceAnnotation("loop step %d" % number):
        x = step(x).block_until_ready()
    teho.step()
"""


@pytest.mark.drawn(1, tests="frameworks")
@pytest.mark.skipif(bool(lacks_framework("jax")), reason=lacks_framework("jax"))
def test_xprof_shows_the_very_steps_that_teho_recorded(
    teho: Call, tmp_path: Path, page: Any
) -> None:
    path = tmp_path / "train.py"
    path.write_text(JAX)
    done = teho(
        "profile", "--steps", "4:7", "--trace-to", tmp_path / "logs", "--",
        FRAMEWORKS / "bin" / "python", path,
        env={"COLUMNS": "200", "JAX_PLATFORMS": "cpu", "PYTHONPATH": SOURCES},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (trace,) = tmp_path.glob("logs/plugins/profile/*/*.xplane.pb")
    session, host = trace.parent.name, trace.name.removesuffix(".xplane.pb")
    with tensorboard(done.stderr) as address:
        page.goto(f"{address}/#profile")
        wait_for(lambda: session in text_of(page), STARTS_S)
        # What XProf's trace viewer draws.
        query = f"run={session}&tag=trace_viewer@&host={host}"
        drawn = page.request.get(f"{address}/data/plugin/profile/data?{query}").text()
    steps = re.findall(r'"(?:ProfilerStep|loop step) (\d+)"', drawn)
    assert sorted(steps) == ["4", "4", "5", "5", "6", "6"]
