"""The portal behind a real nginx, below a path, as Open OnDemand and many sites serve programs."""

from __future__ import annotations

import http.client
import shutil
from contextlib import AbstractContextManager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from nginx_process import NGINX, nginx_of
from portal_process import Events, PortalProcess, portal, recorded

from browsers import ARGUMENTS, BROWSER
from made_runs import make_run
from support import wait_for

pytest.importorskip("starlette", reason="teho[portal] is not installed")
pytest.importorskip("uvicorn", reason="teho[portal] is not installed")
pytestmark = pytest.mark.skipif(
    NGINX is None, reason="no nginx; tests/debian-packages.sh installs it"
)

EXAMPLE = Path(__file__).parents[2] / "examples/runs/one-idle-gpu"
HOST = "ondemand.example.org"
LOCATIONS = """
location /tools/teho/ {{ proxy_pass http://127.0.0.1:{portal}/; }}
# Open OnDemand's shape: the host and the port of the job are in the path.
location ~ ^/rnode/(?<job_host>[^/]+)/(?<job_port>\\d+)(?<rest>/.*)$ {{
  proxy_pass http://$job_host:$job_port$rest$is_args$args;
}}
"""
LINKS = "[...document.querySelectorAll('a[href]:not([download])')].map(link => link.href)"


def nginx(folder: Path, running: PortalProcess) -> AbstractContextManager[int]:
    """Start an nginx in front of a portal, with its default buffers; yield its port."""
    return nginx_of(folder, LOCATIONS.format(portal=running.port))


def test_pages_and_live_values_below_a_path(nvml_library: Path, tmp_path: Path) -> None:
    with (
        recorded(tmp_path, nvml_library, "sleep", "60") as directory,
        portal(tmp_path, "--allow-host", HOST, on_port=True) as one,
        nginx(tmp_path, one) as port,
    ):
        for prefix in ("/tools/teho/", f"/rnode/127.0.0.1/{one.port}/"):
            asked = _Below(port, prefix)
            token = one.links[-1].partition("token=")[2]
            links = len(one.links)
            answer, _ = asked.get(f"?token={token}")
            assert (answer.status, answer.headers["location"]) == (303, "?")
            cookie = answer.headers["set-cookie"]
            # Without a path, the browser keeps it for the folder of the portal.
            assert "path=" not in cookie.lower()
            wait_for(lambda before=links: len(one.links) > before)
            asked.headers["Cookie"] = cookie.partition(";")[0]
            for address in ("", "runs", f"run?id={directory.name}", "style.css", "report.js"):
                answer, text = asked.get(address)
                assert answer.status == 200, address
                assert 'href="/' not in text, address
                assert 'src="/' not in text, address
            assert asked.get("runs", Host="elsewhere.example.org")[0].status == 421
            # nginx collects an answer in a buffer of 4 kB or more, unless the answer forbids this.
            # These events are so small that a buffer would be full only after the time limit.
            events = Events(
                asked.connection(), f"{prefix}events?shown={directory.name}", **asked.headers
            )
            (_, _, facts) = events.until("runs", 2)[-1]
            assert facts[directory.name]["power"] == "650 W"
            events.close()


class _Below:
    """Requests to nginx below a path, as from a browser that knows nginx by its name."""

    def __init__(self, port: int, prefix: str) -> None:
        self._port, self._prefix = port, prefix
        self.headers = {"Host": HOST}

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)

    def get(self, address: str, **headers: str) -> tuple[http.client.HTTPResponse, str]:
        connection = self.connection()
        connection.request("GET", self._prefix + address, headers={**self.headers, **headers})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer, text


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed here")
def test_a_browser_shows_live_values_below_a_path(nvml_library: Path, tmp_path: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with (
        recorded(tmp_path, nvml_library, "sleep", "60") as directory,
        portal(tmp_path, on_port=True) as one,
        nginx(tmp_path, one) as port,
        playwright.sync_playwright() as driver,
    ):
        browser = driver.chromium.launch(executable_path=BROWSER, args=ARGUMENTS)
        page = browser.new_page()
        base = f"http://127.0.0.1:{port}/rnode/127.0.0.1/{one.port}/"
        page.goto(f"{base}?token={one.links[-1].partition('token=')[2]}")
        page.locator("[data-run] a").click()
        assert page.url == f"{base}run?id={directory.name}"
        page.get_by_text("New values come every second.").wait_for()
        page.locator("#live-plots canvas").first.wait_for()
        browser.close()


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed here")
def test_a_browser_shows_every_page_below_a_path(tmp_path: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    for run_id in ("20261123-094500-one-aaaa", "20261123-094600-two-bbbb"):
        shutil.copytree(EXAMPLE, tmp_path / "home/runs" / run_id)
    for number in range(60):
        make_run(tmp_path / "home", number, gpus=number % 2, cluster="lumi", tags={"seed": "1"})
    kinds, troubles, asked = set(), [], []
    with (
        portal(tmp_path, "--allow-host", HOST, on_port=True) as one,
        nginx(tmp_path, one) as port,
        playwright.sync_playwright() as driver,
    ):
        browser = driver.chromium.launch(
            executable_path=BROWSER,
            args=[*ARGUMENTS, f"--host-resolver-rules=MAP {HOST} 127.0.0.1"],
        )
        page = browser.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        base = f"http://{HOST}:{port}/tools/teho/"
        page.goto(f"{base}?token={one.links[-1].partition('token=')[2]}")
        waiting, seen = [page.url], set()
        while waiting:
            address = waiting.pop(0)
            kind = urlsplit(address).path
            # Each page of the portal is visited as a link leads to it; some pages of each kind.
            if address in seen or sum(urlsplit(one).path == kind for one in seen) >= 3:
                continue
            seen.add(address)
            answer = page.goto(address)
            assert answer.status == 200, address
            assert page.locator("h1").count() == 1
            kinds.add(kind.removeprefix("/tools/teho/"))
            found = page.evaluate(LINKS)
            waiting += [one.partition("#")[0] for one in found]
        boxes = page.goto(f"{base}runs") and page.locator("tbody input").all()
        for box in boxes[:2]:
            box.check()
        page.get_by_role("button", name="Compare").click()
        page.wait_for_selector("html.drawn", state="attached")
        assert page.url.startswith(f"{base}compare?")
        browser.close()
    assert kinds >= {"", "runs", "run", "compare", "usage", "clusters", "cluster", "plan"}
    assert all(url.startswith(base) for url in asked)
    # Without encryption, a browser does not use this header, and says so.
    assert [one for one in troubles if "Cross-Origin-Opener-Policy" not in one] == []
