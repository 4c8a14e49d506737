"""Live values of a real run that goes on: events with a cursor, for several browsers."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nvml_stub
import pytest
from nvml_stub import Scenario
from portal_process import PortalProcess, environment, portal

from support import TEHO, wait_for

pytest.importorskip("starlette", reason="teho[portal] is not installed")
pytest.importorskip("uvicorn", reason="teho[portal] is not installed")

STEADY = Scenario(("gpus 2", "processes 0 parent", "0 * 50 1000 400", "0 1 50 1000 250"))


@contextmanager
def recorded(folder: Path, library: Path, *command: str) -> Iterator[Path]:
    """Record a program with two stub GPUs until the block ends."""
    scenario = STEADY.write(folder / "scenario.txt")
    env = {**os.environ, **environment(folder), **nvml_stub.environment(library, scenario)}
    process = subprocess.Popen(
        [*TEHO, "run", "-q", "--every", "200ms", "--name", "live", "--", *command], env=env
    )
    try:
        wait_for(lambda: list((folder / "home").glob("runs/[!.]*/nodes/*.json")))
        (directory,) = (folder / "home").glob("runs/[!.]*")
        yield directory
    finally:
        process.terminate()
        process.wait(60)


class Events:
    """A stream of events."""

    def __init__(self, running: PortalProcess, address: str, cursor: str = "") -> None:
        self._connection = running.connection()
        headers = {"Last-Event-ID": cursor} if cursor else {}
        self._connection.request("GET", address, headers=headers)
        self.answer: http.client.HTTPResponse = self._connection.getresponse()

    def until(self, name: str, count: int = 1) -> list[tuple[str, str, Any]]:
        """Return the events until some of a name have come: id, name, data."""
        found: list[tuple[str, str, Any]] = []
        fields: dict[str, str] = {}
        while sum(one[1] == name for one in found) < count:
            line = self.answer.readline().decode()
            assert line, "the stream has ended"
            key, _, value = line.rstrip("\n").partition(": ")
            if key:
                fields[key] = value
            elif fields.get("event"):
                found.append((fields.get("id", ""), fields["event"], json.loads(fields["data"])))
                fields = {}
        return found

    def close(self) -> None:
        self.answer.close()
        self._connection.close()


def test_samples_come_with_a_cursor_until_the_run_ends(nvml_library: Path, tmp_path: Path) -> None:
    with recorded(tmp_path, nvml_library, "sleep", "60") as directory, portal(tmp_path) as one:
        page = one.ask(f"/run?id={directory.name}").text
        assert f'data-events="events?id={directory.name}"' in page
        stream = Events(one, f"/events?id={directory.name}")
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
        stream.close()
        # A browser that was away gets only what is new.
        later = Events(one, f"/events?id={directory.name}", cursor=str(numbers[-1]))
        again = [event for event in later.until("sample", 1) if event[1] == "sample"]
        assert int(again[0][0]) > numbers[-1]
        # Another browser gets the last minutes too.
        other = Events(one, f"/events?id={directory.name}")
        kept = [event for event in other.until("sample", 3) if event[1] == "sample"]
        assert int(kept[0][0]) <= numbers[0]
        empty = Events(one, "/events?shown=")
        empty.until("changed")
        home = Events(one, f"/events?shown={directory.name}")
        ((_, _, facts),) = home.until("runs")
        assert facts[directory.name]["busy"] == "50 %"
        assert len(list((directory / "leases").iterdir())) == 1
        subprocess.run(["pkill", "-P", str(pid_of(directory)), "sleep"], check=False)
        later.until("ended")
        home.until("changed")
        for one_stream in (later, other, home, empty):
            one_stream.close()
    assert list((directory / "leases").iterdir()) == []


def pid_of(directory: Path) -> int:
    return int(json.loads((directory / "run.json").read_bytes())["supervisor_pid"])


def test_a_run_that_does_not_go_on_has_no_events(tmp_path: Path) -> None:
    with portal(tmp_path) as one:
        assert one.ask("/events?id=20260101-000000-none-aaaa").status == 404
        assert one.ask("/events?id=../x").status == 404
