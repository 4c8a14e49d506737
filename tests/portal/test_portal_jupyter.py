"""The portal behind a real jupyter-server-proxy, as in JupyterLab and on a JupyterHub."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from portal_process import environment, portal, recorded

from browsers import ARGUMENTS, BROWSER
from support import FRAMEWORKS, TEHO, lacks_framework, wait_for

pytest.importorskip("starlette", reason="teho[portal] is not installed")
pytest.importorskip("uvicorn", reason="teho[portal] is not installed")
MISSING = lacks_framework("jupyter_server_proxy")
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=MISSING),
    pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed here"),
]

SECRET = "jupyter-s-own-token"
BASE = "/user/maija/"
"""As of a user of a JupyterHub."""
ENTRY = f"""\
c.ServerProxy.servers = {{
    "teho": {{
        "command": [*{TEHO!r}, "portal", "--socket", "{{unix_socket}}"],
        "unix_socket": True,
        "timeout": 60,
        "launcher_entry": {{"title": "Teho"}},
    }}
}}
"""
"""As in docs/portal.md."""


@contextmanager
def jupyter(folder: Path, configuration: str = "") -> Iterator[int]:
    """Start a Jupyter server; yield its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    for name in ("config", "data", "runtime"):
        (folder / f"jupyter-{name}").mkdir()
    (folder / "jupyter-config/jupyter_server_config.py").write_text(configuration)
    env = {
        **os.environ,
        **environment(folder),
        "HOME": str(folder),
        "JUPYTER_CONFIG_DIR": str(folder / "jupyter-config"),
        "JUPYTER_DATA_DIR": str(folder / "jupyter-data"),
        "JUPYTER_RUNTIME_DIR": str(folder / "jupyter-runtime"),
    }
    log = folder / "jupyter.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [FRAMEWORKS / "bin/python", "-m", "jupyter_server", "--no-browser", "--allow-root",
             "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.port_retries=0",
             f"--IdentityProvider.token={SECRET}", f"--ServerApp.base_url={BASE}",
             f"--ServerApp.root_dir={folder}"],
            env=env, cwd=folder, stdout=output, stderr=output,
        )  # fmt: skip
    try:
        wait_for(lambda: process.poll() is not None or _status(port, "api") == 200, 60)
        assert process.poll() is None, log.read_text()
        yield port
    finally:
        process.terminate()
        process.wait(60)


def _status(port: int, address: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", BASE + address)
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


@contextmanager
def browser_of(port: int) -> Iterator[tuple[Any, list[str]]]:
    """Start a browser that has logged in to Jupyter; yield a page, and what goes wrong in it."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    troubles: list[str] = []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=ARGUMENTS)
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{port}{BASE}login?token={SECRET}")
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        yield page, troubles
        browser.close()


def shows_everything(page: Any, base: str, run_id: str) -> None:
    """Go from the home page to the live values of a run, and to other pages."""
    assert page.locator("h1").inner_text() == "1 run is running"
    page.locator("[data-run] [data-fact=power]", has_text="650").wait_for()
    page.locator("[data-run] a").click()
    assert page.url == f"{base}run?id={run_id}"
    page.get_by_text("New values come every second.").wait_for()
    page.locator("#live-plots canvas").first.wait_for()
    for label, heading in (("Runs", "Runs"), ("Usage", "Usage"), ("Plan", "What to request")):
        page.get_by_role("link", name=label, exact=True).click()
        assert page.locator("h1").inner_text().startswith(heading)
        assert page.url.startswith(base)


def test_a_portal_on_a_port(nvml_library: Path, tmp_path: Path) -> None:
    with (
        recorded(tmp_path, nvml_library, "sleep", "120") as directory,
        portal(tmp_path, on_port=True) as one,
        jupyter(tmp_path) as port,
        browser_of(port) as (page, troubles),
    ):
        # Another user has to log in to Jupyter first; and after that, the link is still necessary.
        assert _status(port, f"proxy/{one.port}/") in {302, 403}
        base = f"http://127.0.0.1:{port}{BASE}proxy/{one.port}/"
        assert page.goto(f"{base}runs").status == 403
        page.goto(f"{base}?token={one.links[-1].partition('token=')[2]}")
        assert page.url == f"{base}?"
        troubles.clear()  # the browser reports the status 403
        shows_everything(page, base, directory.name)
        assert troubles == []


def test_a_portal_that_jupyter_starts_itself(nvml_library: Path, tmp_path: Path) -> None:
    with (
        recorded(tmp_path, nvml_library, "sleep", "120") as directory,
        jupyter(tmp_path, ENTRY) as port,
        browser_of(port) as (page, troubles),
    ):
        assert _status(port, "teho/") in {302, 403}
        base = f"http://127.0.0.1:{port}{BASE}teho/"
        page.goto(base)
        shows_everything(page, base, directory.name)
        assert troubles == []
