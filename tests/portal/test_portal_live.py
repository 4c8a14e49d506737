"""Live values of a real run that goes on: events with a cursor, for several browsers."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import msgspec
import pytest
from portal_process import Events, portal, recorded

from browsers import ARGUMENTS, BROWSER
from teho.model.run import FORMAT_VERSION, Run
from teho.show.portal.live import _curves, _facts, _Newest
from teho.units import GIB
from top.frames import AT, frame, with_processes

pytest.importorskip("starlette", reason="teho[portal] is not installed")
pytest.importorskip("uvicorn", reason="teho[portal] is not installed")


def test_a_run_without_gpus_has_values_of_its_nodes() -> None:
    nodes = frame({"n1": [], "n2": []}).nodes
    assert _curves(nodes) == {
        "job_cpu_s": [6.0, 6.0],
        "job_memory_bytes": pytest.approx([50 * GIB, 50 * GIB], rel=1e-4),
    }
    run = Run(format=FORMAT_VERSION, id="r", command=("x",), started_at=AT, host="n1")
    facts = _facts(run, nodes, 100.0, 1.0)
    assert {*facts} == {"elapsed", "cores", "memory", "age"}
    assert (facts["cores"], facts["memory"]) == ("12 cores", "100 GiB")
    silent = frame({"n1": [], "n2": []}, ages_s={"n2": 900.0}).nodes
    assert {*_facts(run, silent, 100.0, 900.0)} == {"elapsed", "age"}, "a part is not the sum"


def test_the_first_processes_are_shown_without_users() -> None:
    (node,) = with_processes(frame({"g1": [90.0] * 4})).nodes
    hostile = msgspec.structs.replace(
        node.processes[0], command="python </td><script>alert(1)</script> \x1b[2J\u202egp.exe"
    )
    assert hostile.owner == "other"
    others = [msgspec.structs.replace(node.processes[2], pid=5000 + number) for number in range(30)]
    shown = msgspec.structs.replace(node, processes=(*others, hostile))
    tables = _Newest(nodes=[shown]).for_page().tables
    table = tables.partition("<h3>Processes now")[2].partition("</div>\n</div>")[0]
    assert table.count("<tr>") == 1 + 20
    assert "and 11\N{NO-BREAK SPACE}more processes" in table
    assert table.index("&lt;script&gt;") < table.index("cp big"), "those on a GPU come first"
    assert [mark for mark in ("<script", "\x1b", "\u202e") if mark in tables] == []
    assert ">User<" not in tables
    assert "other user" not in tables


def test_samples_come_with_a_cursor_until_the_run_ends(nvml_library: Path, tmp_path: Path) -> None:
    with recorded(tmp_path, nvml_library, "sleep", "60") as directory, portal(tmp_path) as one:
        page = one.ask(f"/run?id={directory.name}").text
        assert f'data-events="events?id={directory.name}"' in page
        stream = Events(one.connection(), f"/events?id={directory.name}")
        assert stream.answer.headers["content-type"].startswith("text/event-stream")
        events = stream.until("sample", 3)
        (_, _, now), *_ = (event for event in events if event[1] == "now")
        assert now["gpus"] == ["GPU 0", "GPU 1"]
        assert now["facts"]["busy"] == "50 %"
        assert now["facts"]["power"] == "650 W"
        assert "<table>" in now["tables"]
        samples = [event for event in events if event[1] == "sample"]
        numbers = [int(number) for number, _, _ in samples]
        assert numbers == sorted(set(numbers))
        assert samples[-1][2]["values"]["gpu_power_w"] == [400.0, 250.0]
        # The processes come over the connection: rows have none.
        while "Processes now" not in now["tables"]:
            *_, (_, _, now) = stream.until("now")
        assert "sleep 60" in now["tables"]
        stream.close()
        # A browser that was away gets only what is new.
        later = Events(one.connection(), f"/events?id={directory.name}", cursor=str(numbers[-1]))
        again = [event for event in later.until("sample", 1) if event[1] == "sample"]
        assert int(again[0][0]) > numbers[-1]
        # Another browser gets the last minutes too.
        other = Events(one.connection(), f"/events?id={directory.name}")
        kept = [event for event in other.until("sample", 3) if event[1] == "sample"]
        assert int(kept[0][0]) <= numbers[0]
        empty = Events(one.connection(), "/events?shown=")
        empty.until("changed")
        home = Events(one.connection(), f"/events?shown={directory.name}")
        ((_, _, facts),) = home.until("runs")
        assert facts[directory.name]["busy"] == "50 %"
        # A sample waits for up to a second until the portal reads it, which counts.
        age = facts[directory.name]["age"]
        assert age.endswith(" s"), age
        assert 1.0 <= float(age.split()[0]) < 20, "the machine of the tests may be slow"
        # The verdict so far comes in the background.
        for _ in range(60):
            if "sentence" in facts[directory.name]:
                break
            ((_, _, facts),) = home.until("runs")
        # Which finding is the first depends on the time that has passed.
        assert "GPU" in facts[directory.name]["sentence"]
        assert facts[directory.name]["mark"]
        assert facts[directory.name]["tone"] in {"accent", "remark", "warning", "critical"}
        assert facts[directory.name]["pace"] == "–", "sleep makes no steps"
        assert len(list((directory / "leases").iterdir())) == 1
        subprocess.run(["pkill", "-P", str(pid_of(directory)), "sleep"], check=False)
        later.until("ended")
        home.until("changed")
        for one_stream in (later, other, home, empty):
            one_stream.close()
    assert list((directory / "leases").iterdir()) == []


def pid_of(directory: Path) -> int:
    return int(json.loads((directory / "run.json").read_bytes())["supervisor_pid"])


def test_a_run_that_has_ended_has_no_events(tmp_path: Path) -> None:
    with portal(tmp_path) as one:
        assert one.ask("/events?id=20260101-000000-none-aaaa").status == 404
        assert one.ask("/events?id=../x").status == 404


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed here")
def test_a_browser_shows_the_newest_verdict_of_a_running_run(
    nvml_library: Path, tmp_path: Path
) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with (
        recorded(tmp_path, nvml_library, "sleep", "60") as directory,
        portal(tmp_path, on_port=True) as one,
        playwright.sync_playwright() as driver,
    ):
        browser = driver.chromium.launch(executable_path=BROWSER, args=ARGUMENTS)
        page = browser.new_page()
        page.goto(one.links[-1])
        page.goto(f"http://127.0.0.1:{one.port}/run?id={directory.name}")
        shown = page.locator("#live-verdict .sentence:not(:empty)")
        shown.wait_for(timeout=60_000)
        assert page.locator("#live-verdict").get_attribute("class")
        assert page.locator("#live-verdict .mark").inner_text()
        browser.close()
