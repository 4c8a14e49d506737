"""The pages of a run that goes on, in Chromium: desktop, phone, dark, without JavaScript."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from portal_process import PortalProcess, portal, recorded

from browsers import ARGUMENTS, BROWSER, OVERFLOW
from teho.model.metric import METRICS_BY_NAME

pytest.importorskip("starlette", reason="teho[portal] is not installed")
pytest.importorskip("uvicorn", reason="teho[portal] is not installed")

STEPS = """
import time, teho
end_s = time.monotonic() + 900
while time.monotonic() < end_s:
    time.sleep(0.05)
    teho.step()
"""
REPORTED_S = 25.0
"""The stub's counters of the multiprocessors have values by then, in the report too."""
CAVEATS = {
    "gpu_sm_active_percent": (
        "80 % means that all of them had work for 80 % of the time, or that 80 % of them had work "
        "all the time. A multiprocessor that waits for memory also has work"
    ),
    "gpu_sm_occupancy_percent": "A high value alone does not mean that the GPU is used well",
    "gpu_tensor_percent": "which the tensor cores' pipe was active, averaged over",
    "gpu_fp64_percent": "for 64-bit floating point was active",
    "gpu_fp32_percent": "for 32-bit floating point was active",
    "gpu_fp16_percent": "for 16-bit floating point was active (without tensor cores)",
}
"""What the Alliance's portal shows of a GPU, and what Teho says beside each plot."""


class _Going:
    """A run that goes on, and the portal that shows it."""

    def __init__(self, run_id: str, running: PortalProcess) -> None:
        self.addresses = ("", f"run?id={run_id}")
        self.base = f"http://127.0.0.1:{running.port}/"
        self.running = running


@pytest.fixture(scope="module")
def going(nvml_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Going]:
    folder = tmp_path_factory.mktemp("running")
    (folder / "train.py").write_text(STEPS)
    limit = {"SLURM_JOB_ID": "77", "SLURM_GPUS_ON_NODE": "2",
             "SLURM_JOB_START_TIME": str(int(time.time())),
             "SLURM_JOB_END_TIME": str(int(time.time()) + 5000)}  # fmt: skip
    with recorded(
        folder, nvml_library, sys.executable, str(folder / "train.py"), **limit
    ) as directory:
        began_s = time.monotonic()
        with portal(folder, on_port=True) as one:
            time.sleep(max(0.0, began_s + REPORTED_S - time.monotonic()))
            yield _Going(directory.name, one)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if BROWSER is None:
        pytest.skip("no Chromium is installed here")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=BROWSER, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def state(browser: Any, going: _Going) -> Any:
    context = browser.new_context()
    context.new_page().goto(going.running.links[-1])
    return context.storage_state()


@pytest.fixture
def visit(browser: Any, going: _Going, state: Any) -> Iterator[Callable[..., Any]]:
    """Open a page; what the browser complains of, and a request to elsewhere, fails the test."""
    contexts, troubles, asked = [], [], []

    def open_page(address: str, *, width: int = 1280, **options: Any) -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, storage_state=state, **options
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(going.base + address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []
    assert all(url.startswith(going.base) for url in asked)


def wait_for_values(page: Any) -> None:
    """Wait until the page shows values of the present moment."""
    page.locator("[data-fact=busy]", has_text="50 %").first.wait_for()
    if page.locator("#live").count():
        page.locator("#live-plots canvas").nth(5).wait_for()
        page.locator("#live-tables h3", has_text="Processes now").wait_for()


@pytest.mark.drawn(1, by="width")
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark"), (3840, "light")])
def test_the_pages_of_a_running_run_fit(
    visit: Callable[..., Any], going: _Going, width: int, scheme: str
) -> None:
    for address in going.addresses:
        page = visit(address, width=width, color_scheme=scheme)
        wait_for_values(page)
        assert page.evaluate(OVERFLOW) == 0, address
        assert page.locator("h1").count() == 1
        assert page.locator("[data-fact=power]").first.inner_text() == "650 W"
        left = page.locator("[data-fact=left]").first.inner_text()
        assert left.startswith("1 h"), left


def test_the_pages_of_a_running_run_without_javascript(
    visit: Callable[..., Any], going: _Going
) -> None:
    home, run = (
        visit(address, width=390, java_script_enabled=False) for address in going.addresses
    )
    assert home.locator("h1").inner_text() == "1 run is running"
    assert home.locator("[data-run] .about").inner_text().endswith("train.py")
    for page in (home, run):
        assert page.evaluate(OVERFLOW) == 0
        assert page.locator(".copy:visible, canvas").count() == 0
        shown = {
            one.get_attribute("data-fact"): one.inner_text()
            for one in page.locator("dd[data-fact]:visible").all()
        }
        shown.pop("pace", None)  # the verdict may not be computed yet
        assert {"elapsed", "busy", "power", "cores", "memory", "left"} <= {*shown}
        assert (shown["busy"], shown["power"]) == ("50 %", "650 W")
        assert shown["left"].startswith("1 h")
        assert "–" not in shown.values()
    assert run.locator("#live-tables td").first.is_visible()
    assert run.get_by_text("Reload the page to see the newest values.").is_visible()
    numbers = run.locator("figure details").first
    numbers.locator("summary").click()
    assert numbers.locator("td").first.is_visible()


@pytest.mark.drawn(1, by="scheme")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_the_pages_of_a_running_run(
    visit: Callable[..., Any], going: _Going, scheme: str
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    for address in going.addresses:
        page = visit(address, color_scheme=scheme, bypass_csp=True)
        wait_for_values(page)
        options = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
        found = axe.run(page, options=options).response
        assert len(found["passes"]) > 5
        assert [
            (one["id"], one["nodes"][0]["html"][:200], one["nodes"][0]["failureSummary"][:200])
            for one in found["violations"]
        ] == []


def test_each_plot_has_its_caveat(visit: Callable[..., Any], going: _Going) -> None:
    page = visit(going.addresses[1])
    page.wait_for_selector("html.drawn", state="attached")
    for metric, caveat in CAVEATS.items():
        title = METRICS_BY_NAME[metric].label
        title = title[:1].upper() + title[1:]
        heading = page.locator("h4").get_by_text(title, exact=True)
        figure = page.locator("figure").filter(has=heading)
        assert figure.count() == 1, title
        assert figure.locator("canvas").is_visible()
        meaning = figure.locator("figcaption p")
        assert caveat in meaning.inner_text().replace("\N{NO-BREAK SPACE}", " ")
        # Beside the plot: the reader does not have to scroll from one to the other.
        below = figure.locator(".canvas").bounding_box()["y"] - meaning.bounding_box()["y"]
        assert 0 < below < 150
    live = page.locator("#live-plots figure").filter(has_text="SM active, last 10 min")
    live.locator("canvas").wait_for()
    assert CAVEATS["gpu_sm_active_percent"] in live.locator("figcaption p").inner_text()
    busy = page.locator("#live-plots figure").filter(has_text="GPU busy, last 10 min")
    assert "even if the kernel used only a small part of the GPU" in busy.inner_text()


def test_a_running_run_can_be_printed(visit: Callable[..., Any], going: _Going) -> None:
    for address in going.addresses:
        page = visit(address, width=718)
        wait_for_values(page)
        page.emulate_media(media="print")
        assert page.evaluate(OVERFLOW) == 0
        assert page.pdf().startswith(b"%PDF")
