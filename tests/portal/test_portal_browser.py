"""The portal in Chromium: desktop, phone, dark, without JavaScript, and behind a proxy."""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from portal_process import PortalProcess, environment, portal

from browsers import ARGUMENTS, BROWSER, OVERFLOW
from made_runs import make_run
from teho.config.settings import load_settings
from teho.show.portal.export import export
from teho.store.share import share

pytest.importorskip("starlette", reason="teho[portal] is not installed")
pytest.importorskip("uvicorn", reason="teho[portal] is not installed")

EXAMPLE = Path(__file__).parents[2] / "examples/runs/one-idle-gpu"
REAL = "20261123-094500-one-aaaa"
OTHER = "20261123-094600-two-bbbb"
USER = pwd.getpwuid(os.geteuid()).pw_name
NARROW = """() => [...document.querySelectorAll("th, td")]
  .filter((cell) => cell.offsetWidth && cell.offsetWidth < 30 && cell.innerText.trim().length > 3)
  .map((cell) => cell.innerText)"""
"""Cells whose letters are below each other."""
PREFIX = "/rnode/g1.example/8750"
PAGES = ("", "runs", "runs?by=program", f"run?id={REAL}", f"compare?run={REAL}&run={OTHER}",
         "usage", "clusters", "cluster?name=lumi", "runs?of=group", "usage?of=group&by=user",
         f"run?id={REAL}&by={USER}", f"compare?run={REAL}&run={OTHER}&run={USER}:{REAL}",
         "plan?gpus=1&cluster=lumi&command=python+train.py&exclusive=yes", "nothing")  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if BROWSER is None:
        pytest.skip("no Chromium is installed here")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(executable_path=BROWSER, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PortalProcess]:
    folder = tmp_path_factory.mktemp("browser")
    for run_id in (REAL, OTHER):
        shutil.copytree(EXAMPLE, folder / "home/runs" / run_id)
    for number in range(60):
        make_run(folder / "home", number, command=("python", f"train-{number}.py", "x" * 200),
                 gpus=number % 3, cluster="lumi" if number < 10 else "roihu")  # fmt: skip
    make_run(folder / "home", 60, command=("bash", "programs/harbour_tide_tables.sh", "--first-day",
                                           "2026-11-01"))  # fmt: skip
    # The own group: nothing here needs a second user.
    shared = folder / "project"
    shared.mkdir()
    share(folder / "home/runs" / REAL, shared, grp.getgrgid(os.getegid()).gr_name)
    with portal(folder, on_port=True, env={"TEHO_SHARED": str(shared)}) as one:
        yield one


@contextmanager
def behind_proxy(port: int) -> Iterator[str]:
    """Serve a port below a path, as Open OnDemand and jupyter-server-proxy do."""

    class Forward(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            method, path, version = self.rfile.readline().decode().split()
            assert path.startswith(PREFIX)
            head = f"{method} {path.removeprefix(PREFIX) or '/'} {version}\r\nConnection: close\r\n"
            while (line := self.rfile.readline()) not in {b"\r\n", b""}:
                head += "" if line.lower().startswith(b"connection:") else line.decode()
            with socket.create_connection(("127.0.0.1", port)) as inner:
                inner.sendall(f"{head}\r\n".encode())
                while data := inner.recv(65_536):
                    self.wfile.write(data)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Forward) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}{PREFIX}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def state(browser: Any, running: PortalProcess) -> Any:
    """Open the link once; all pages then have its cookie."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(running.links[-1])
    assert page.url == f"http://127.0.0.1:{running.port}/?"
    return context.storage_state()


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve an export of two runs, as a web server without programs does."""
    folder = tmp_path_factory.mktemp("exported")
    shutil.copytree(EXAMPLE, folder / "home/runs" / REAL)
    make_run(folder / "home", 1, command=("python", "train.py", "x" * 200), gpus=1)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment(folder).items():
            patch.setenv(name, value)
        export(load_settings(), folder / "public")
    files = partial(SimpleHTTPRequestHandler, directory=folder / "public")
    with ThreadingHTTPServer(("127.0.0.1", 0), files) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture
def visit(browser: Any, running: PortalProcess, state: Any) -> Iterator[Callable[..., Any]]:
    """Open a page; what the browser complains of, and a request to elsewhere, fails the test."""
    contexts, troubles = [], []
    base = f"http://127.0.0.1:{running.port}/"

    def open_page(address: str, *, width: int = 1280, base: str = base, **options: Any) -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, storage_state=state, **options
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: (troubles.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: asked.append(request.url))
        asked: list[str] = []
        page.goto(base + address)
        assert all(url.startswith(base) for url in asked)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [one for one in troubles if "status of 404" not in one] == []


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark"), (3840, "light")])
def test_every_page_fits(visit: Callable[..., Any], width: int, scheme: str) -> None:
    page = visit("", width=width, color_scheme=scheme)
    base = page.url
    for address in PAGES:
        page.goto(base + address)
        assert page.evaluate(OVERFLOW) == 0, address
        assert page.locator("h1").count() == 1
        assert page.locator("nav a").count() == 7


@pytest.mark.drawn(2)
@pytest.mark.parametrize("address", PAGES)
def test_every_page_without_javascript(visit: Callable[..., Any], address: str) -> None:
    page = visit(address, width=390, java_script_enabled=False)
    assert page.locator("h1").inner_text()
    assert page.locator("main").inner_text().strip() or address == "nothing"
    # What only a script could use is not shown.
    assert page.locator(".copy:visible, .keys:visible, canvas").count() == 0
    if page.locator("figure").count():
        assert page.locator(".unscripted").is_visible()
        numbers = page.locator("figure details").first
        numbers.locator("summary").click()
        assert numbers.locator("td").first.is_visible()


@pytest.mark.drawn(2)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("address", PAGES)
def test_axe_finds_nothing(visit: Callable[..., Any], address: str, scheme: str) -> None:
    # The policy of the portal forbids the script of axe, as it forbids every script from elsewhere.
    page = visit(address, color_scheme=scheme, bypass_csp=True)
    page.wait_for_load_state("load")
    assert violations(page) == []


def violations(page: Any) -> list[tuple[str, str, str]]:
    """Return what axe finds on a page: the rule, and the first element that breaks it."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    options = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
    found = axe.run(page, options=options).response
    assert len(found["passes"]) > 5
    return [
        (one["id"], one["nodes"][0]["html"][:200], one["nodes"][0]["failureSummary"][:200])
        for one in found["violations"]
    ]


def test_the_export_without_javascript(visit: Callable[..., Any], exported: str) -> None:
    page = visit("", base=exported, width=390, color_scheme="dark", java_script_enabled=False)
    assert page.locator("tbody tr").count() == 2
    assert page.evaluate(OVERFLOW) == 0
    page.get_by_role("link", name="one-idle-gpu").click()
    assert page.url == f"{exported}{REAL}.html"
    assert page.locator("h1").inner_text().endswith("was never used.")
    assert page.locator("canvas").count() == 0
    assert page.evaluate(OVERFLOW) == 0


def test_axe_finds_nothing_in_the_list_of_the_export(
    visit: Callable[..., Any], exported: str
) -> None:
    page = visit("", base=exported, width=390, color_scheme="dark", bypass_csp=True)
    page.wait_for_load_state("load")
    assert violations(page) == []


def test_axe_can_find_something(visit: Callable[..., Any]) -> None:
    """The same check fails for a page with pale text and a field without a label."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = visit("plan", bypass_csp=True)
    page.evaluate("""() => {
      document.querySelector("label[for=gpus]").remove();
      document.querySelector("#gpus").removeAttribute("placeholder");
      document.querySelector(".empty").style.color = "#bbb";
    }""")
    found = {one["id"] for one in axe.run(page).response["violations"]}
    assert {"color-contrast", "label"} <= found


@pytest.mark.drawn(2)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("address", PAGES)
def test_every_page_can_be_printed(visit: Callable[..., Any], address: str, scheme: str) -> None:
    page = visit(address, width=718, color_scheme=scheme)  # A4 between margins of 1 cm
    page.wait_for_load_state("load")
    page.emulate_media(media="print", color_scheme=scheme)
    assert page.evaluate(OVERFLOW) == 0
    assert page.evaluate(NARROW) == []
    # What only a screen can use is not printed.
    assert page.locator("nav:visible, form.filters:visible, .copy:visible").count() == 0
    assert page.locator(".keys:visible, .paging:visible").count() == 0
    # Ink on white paper, also if the screen is dark.
    paper, ink = page.evaluate("""() => ["backgroundColor", "color"].map(
      (name) => getComputedStyle(document.body)[name].match(/\\d+/g).slice(0, 3).map(Number))""")
    assert min(paper) == 255
    assert max(ink) < 100
    assert page.pdf().startswith(b"%PDF")


def test_the_pages_of_the_group(visit: Callable[..., Any]) -> None:
    page = visit("")
    page.get_by_role("link", name="Group", exact=True).click()
    assert page.locator("h1").inner_text() == "Runs of the group 1"
    assert page.locator("nav [aria-current]").inner_text() == "Group"
    (row,) = page.locator("tbody tr").all()
    assert row.locator("td").last.inner_text() == USER
    row.locator("th a").first.click()
    page.wait_for_selector("html.drawn", state="attached")
    assert page.locator("h1").inner_text().endswith("was never used.")
    assert page.locator("nav [aria-current]").inner_text() == "Group"
    page.get_by_role("link", name="Compare with my newest run").click()
    page.wait_for_selector("html.drawn", state="attached")
    page.get_by_role("link", name="Usage", exact=True).click()
    page.get_by_label("Whose runs").select_option("group")
    page.get_by_label("By", exact=True).select_option("user")
    page.get_by_role("button", name="Show").click()
    assert page.locator("h1").inner_text() == "Usage of the group"
    assert page.locator("tbody th").all_inner_texts() == [USER]
    assert page.locator("tbody td").first.inner_text() == "1"


LINES = """(texts) => texts.map((one) => {
  const range = document.createRange();
  range.selectNodeContents(one);
  return new Set([...range.getClientRects()].map((box) => box.top)).size;
})"""
"""Number of lines in which each element is."""


@pytest.mark.parametrize("width", [360, 390, 430])
def test_the_pages_are_in_one_line_on_a_phone(visit: Callable[..., Any], width: int) -> None:
    page = visit("runs", width=width)
    shown = [link.bounding_box() for link in page.locator("nav a:visible").all()]
    assert len(shown) == 6, "without the name of Teho, which leads to the same page as Home"
    assert len({box["y"] for box in shown}) == 1
    assert shown[-1]["x"] + shown[-1]["width"] <= width


def test_a_name_in_a_title_is_not_broken_at_its_hyphen(visit: Callable[..., Any]) -> None:
    page = visit("plan?gpus=2&gpu-memory=60GiB&time=12h&cluster=lumi&launcher=torchrun")
    names = page.locator("h1 .whole")
    assert names.all_inner_texts() == ["small-g", "GPU-hours"]
    for width in (1280, *range(390, 1200, 45)):
        page.set_viewport_size({"width": width, "height": 900})
        assert names.evaluate_all(LINES) == [1, 1], width
        assert page.evaluate(OVERFLOW) == 0


def test_a_command_in_the_list_is_broken_between_its_words(visit: Callable[..., Any]) -> None:
    page = visit("runs?text=harbour")
    code = page.locator("tbody th code")
    assert code.inner_text() == "bash programs/harbour_tide_tables.sh --first-day 2026-11-01"
    words = """(code) => [...code.querySelectorAll("wbr")].length && [...code.childNodes]
      .filter((one) => one.nodeName !== "WBR").map((one) => {
        const range = document.createRange();
        range.selectNodeContents(one);
        const tops = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
        return [one.textContent, tops.size];
      })"""
    for width in (390, 1280, 3840):
        page.set_viewport_size({"width": width, "height": 900})
        assert [
            text for text, lines in code.evaluate(words) if lines > text.strip().count(" ") + 1
        ] == []
        height = code.evaluate("(one) => one.scrollHeight - one.clientHeight")
        assert height <= 1, "all of it is shown"


def test_a_phone_can_sort(visit: Callable[..., Any]) -> None:
    page = visit("runs", width=390)
    page.get_by_text("More filters and order").click()
    page.get_by_label("Sort by").select_option("name")
    page.get_by_label("Order").select_option("asc")
    page.get_by_role("button", name="Show").click()
    assert "sort=name" in page.url
    assert page.locator("tbody th a").first.inner_text() == "one-idle-gpu"
    assert page.evaluate(OVERFLOW) == 0


def test_the_script_of_a_plan_can_be_copied(visit: Callable[..., Any]) -> None:
    page = visit("plan", width=390)
    assert not page.get_by_label("Partition").is_visible()
    page.get_by_label("GPUs", exact=True).fill("1")
    page.get_by_label("Command").fill("python train.py --lr 0.1")
    page.get_by_label("Cluster", exact=True).select_option("lumi")
    page.get_by_role("button", name="Plan").click()
    script = page.locator("section[aria-labelledby=script]")
    assert script.locator("code").inner_text().startswith("#!/bin/bash")
    assert "python train.py --lr 0.1" in script.locator("code").inner_text()
    script.get_by_role("button", name="copy").click()
    script.get_by_role("button", name="copied").or_(
        script.get_by_role("button", name="selected")
    ).wait_for()
    assert page.evaluate(OVERFLOW) == 0


def test_the_list_without_javascript(visit: Callable[..., Any]) -> None:
    page = visit("runs", java_script_enabled=False)
    page.get_by_label("Search").fill("train-7")
    page.get_by_role("button", name="Show").click()
    assert page.locator("tbody tr").count() == 1
    page.goto(page.url.partition("?")[0])
    page.get_by_role("link", name="next page").click()
    assert "51–63 of 63" in page.content()
    page.goto(page.url.partition("?")[0])
    for box in page.locator("tbody input").all()[:2]:
        box.check()
    page.get_by_role("button", name="Compare").click()
    assert "compare?run=" in page.url
    assert page.locator("main table").count() >= 1


def test_plots_are_drawn_under_the_policy(visit: Callable[..., Any]) -> None:
    page = visit(f"run?id={REAL}")
    page.wait_for_selector("html.drawn", state="attached")
    assert page.locator("canvas").count() > 5
    assert page.locator(".uplot").first.bounding_box()["width"] > 300


def test_compared_runs_have_a_line_each(visit: Callable[..., Any]) -> None:
    page = visit(f"compare?run={REAL}&run={OTHER}")
    page.wait_for_selector("html.drawn", state="attached")
    assert page.locator("section[aria-labelledby=plots] canvas").count() >= 3
    figure = page.locator("section[aria-labelledby=plots] figure").first
    assert "GPU busy, mean of all GPUs" in figure.inner_text()
    assert figure.locator(".legend button").count() == 2


def test_a_finding_shows_its_times_in_the_plots(visit: Callable[..., Any]) -> None:
    page = visit(f"run?id={REAL}")
    page.wait_for_selector("html.drawn", state="attached")
    page.get_by_role("link", name="When: from 0 to").first.click()
    shown = page.locator("figure.shown")
    assert shown.locator("h4").inner_text() == "GPU busy"
    assert shown.locator("canvas").is_visible()
    pressed = shown.locator(".legend button[aria-pressed=true]").all_inner_texts()
    assert [text.split("\n")[0] for text in pressed] == ["GPU 3"]


def test_runs_of_several_pages_can_be_compared(visit: Callable[..., Any]) -> None:
    page = visit("runs?sort=name")
    page.locator(f"input[value='{REAL}']").check()
    assert page.locator(".selected").inner_text().startswith("1 run selected")
    page.goto(page.url.partition("?")[0])
    page.get_by_role("link", name="next page").click()
    assert page.locator("tbody input:checked").count() == 0
    page.locator("tbody input").last.check()
    assert page.locator(".selected").inner_text().startswith("2 runs selected")
    other = page.locator("tbody input").last.input_value()
    page.get_by_role("button", name="Compare").click()
    assert {f"run={REAL}", f"run={other}"} == set(page.url.partition("?")[2].split("&"))
    # A later search has the same selection, until the user clears it.
    page.goto(page.url.partition("compare")[0] + f"runs?text={REAL}")
    assert page.locator("tbody input:checked").count() == 1
    page.get_by_role("button", name="select none").click()
    assert page.locator("tbody input:checked, input[type=hidden][name=run]").count() == 0
    assert not page.locator(".selected").is_visible()
    page.reload()
    assert page.locator("tbody input:checked").count() == 0


def test_the_list_begins_near_the_top_of_a_phone(visit: Callable[..., Any]) -> None:
    page = visit("runs", width=390)
    assert page.locator("tbody tr").first.bounding_box()["y"] < 520
    assert not page.get_by_label("Cluster").is_visible()
    page.get_by_text("More filters and order").click()
    page.get_by_label("Cluster").select_option("roihu")
    page.get_by_role("button", name="Show").click()
    assert page.get_by_label("Cluster").is_visible(), "a filter in use is shown"


def test_keys(visit: Callable[..., Any]) -> None:
    page = visit("runs")
    page.keyboard.press("j")
    page.keyboard.press("j")
    focused = "document.activeElement.closest('tr').querySelector('input').value"
    assert page.evaluate(focused) == REAL
    page.keyboard.press("x")
    assert page.locator("tbody input:checked").count() == 1
    page.keyboard.press("k")
    assert page.evaluate(focused) == OTHER
    page.keyboard.press("n")
    page.wait_for_url("**page=2**")
    page.keyboard.press("/")
    page.keyboard.type("jjj")
    assert page.locator("#text").input_value() == "jjj"


def test_behind_a_proxy_with_a_path(visit: Callable[..., Any], running: PortalProcess) -> None:
    with behind_proxy(running.port) as base:
        page = visit("", base=base)
        page.get_by_role("link", name="Runs", exact=True).click()
        page.locator("tbody th a").nth(1).click()
        page.wait_for_selector("html.drawn", state="attached")
        assert page.url.startswith(f"{base}run?id=")
        page.get_by_role("link", name="All runs of this command").click()
        assert page.url.startswith(f"{base}runs?command=")


def test_a_hostile_recording_runs_nothing(visit: Callable[..., Any], tmp_path: Path) -> None:
    attacks = (
        "</title></script><script>alert(1)</script>",
        "<img src=x onerror=alert(2)><svg onload=alert(3)>",
        "' onmouseover='alert(4)' x='\"><iframe srcdoc='<script>alert(5)</script>'>",
        "javascript:alert(6)//`${alert(7)}`{{7*7}}",
    )
    home = tmp_path / "home"
    for number, attack in enumerate(attacks):
        make_run(home, number, command=("python", attack), name=attack, tags={attack: attack},
                 gpus=1, gpu=attack, cluster=attack, partition=attack, account=attack,
                 environment={"CUDA_VISIBLE_DEVICES": attack}, versions={attack: attack},
                 directory=attack)  # fmt: skip
    ids = [path.name for path in sorted((home / "runs").iterdir())]
    asked: list[str] = []
    with portal(tmp_path, on_port=True) as hostile:
        base = f"http://127.0.0.1:{hostile.port}/"
        page = visit(f"?token={hostile.links[-1].partition('token=')[2]}", base=base)
        page.on("request", lambda request: asked.append(request.url))
        compare = "&".join(f"run={one}" for one in ids)
        for address in ("runs", "runs?by=program", "usage?by=command", "usage?by=account",
                        f"compare?{compare}", f"compare?run={ids[0]}&run={ids[2]}",
                        *(f"run?id={one}" for one in ids)):  # fmt: skip
            page.goto(base + address)
            page.wait_for_load_state("load")
            assert page.locator("iframe, img, svg[onload], [onmouseover]").count() == 0, address
            assert "alert" in page.content(), address
            assert not page.locator("a[href^=javascript]").count()
            assert "49" not in page.title()
            for box in page.locator("main a:visible").all()[:10]:
                box.hover()
    assert all(url.startswith(base) for url in asked)


def test_a_hostile_page_cannot_frame_or_read_the_portal(
    browser: Any, running: PortalProcess, state: Any, tmp_path: Path
) -> None:
    context = browser.new_context(storage_state=state)
    page = context.new_page()
    base = f"http://127.0.0.1:{running.port}/"
    hostile = f'<iframe src="{base}runs"></iframe><script src="{base}portal.js"></script>'
    # Another port of the same host: the browser sends the cookie, but the origin is another one.
    page.route("http://127.0.0.1:9/", lambda route: route.fulfill(
        status=200, content_type="text/html", body=hostile))  # fmt: skip
    page.goto("http://127.0.0.1:9/")
    read = f"fetch('{base}runs', {{credentials: 'include'}}).then(r => r.text(), e => 'refused')"
    assert page.evaluate(read) == "refused"
    opaque = f"fetch('{base}runs', {{mode: 'no-cors', credentials: 'include'}}).then(r => r.type)"
    assert page.evaluate(f"{opaque}.catch(() => 'refused')") in {"opaque", "refused"}
    framed = [frame.content() for frame in page.frames if frame is not page.main_frame]
    assert not any("Search runs" in content for content in framed)
    context.close()
