"""Stays of main threads at the end of a stack sampler's file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from teho.store.layout import create_run_directory, probe_folder
from teho.store.long_stays import LongStays

MAINS = (("n1", 7), ("n1", 8), ("n2", 7))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = create_run_directory(tmp_path, "20261127-100000-x-aaaa", b"{}")
    probe_folder(folder).mkdir()
    return folder


def write(run: Path, *lines: dict[str, Any] | str, node: str = "n1") -> None:
    with (probe_folder(run) / f"{node}-stacks-5.jsonl").open("a") as file:
        for line in lines:
            file.write(line if isinstance(line, str) else json.dumps(line, separators=(",", ":")))
            file.write("\n")


def stays(pid: int, since_s: float, at_s: float) -> dict[str, Any]:
    return {"process": f"{pid}-100", "stays": {"since_s": since_s, "at_s": at_s, "dead": []}}


def left(pid: int) -> dict[str, Any]:
    return {"process": f"{pid}-100", "stays": {}}


def test_all_main_threads_have_to_stay(run: Path) -> None:
    write(run, {"frame": 0, "is": ["a.py", "f", 1, "x"]})
    watch = LongStays(run, MAINS)
    assert not watch.have_grown()
    write(run, stays(7, 100.0, 146.5))
    assert not watch.have_grown()
    write(run, stays(8, 101.0, 146.0))
    assert watch.have_grown()


def test_another_node_and_other_processes_do_not_count(run: Path) -> None:
    write(run, stays(7, 100.0, 146.5), stays(9, 100.0, 146.5))
    write(run, stays(8, 100.0, 146.5), node="n2")
    assert not LongStays(run, MAINS).have_grown()


def test_a_short_stay_is_not_long(run: Path) -> None:
    write(run, stays(7, 100.0, 131.0), stays(8, 100.0, 131.0))
    assert not LongStays(run, MAINS).have_grown()


def test_the_second_answer_follows_soon_and_each_further_one_after_twice_as_long(run: Path) -> None:
    write(run, stays(7, 100.0, 146.5), stays(8, 100.0, 146.5))
    watch = LongStays(run, MAINS)
    assert watch.have_grown()
    for at_s, is_long in (
        (155.0, False), (162.0, True), (194.0, False), (223.0, False), (225.0, True),
    ):  # fmt: skip
        write(run, stays(7, 100.0, at_s), stays(8, 100.0, at_s))
        assert watch.have_grown() is is_long, at_s


def test_a_process_that_continues_begins_again(run: Path) -> None:
    write(run, stays(7, 100.0, 146.5), stays(8, 100.0, 146.5))
    watch = LongStays(run, MAINS)
    assert watch.have_grown()
    write(run, left(7), left(8))
    assert not watch.have_grown()
    write(run, stays(7, 200.0, 246.5), stays(8, 200.0, 240.0))
    assert not watch.have_grown()
    write(run, stays(8, 200.0, 246.5))
    assert watch.have_grown()


def test_a_process_that_has_ended_does_not_count(run: Path) -> None:
    write(run, stays(7, 100.0, 146.5), {"process": "8-100", "ended_s": 120.0, "status": 9})
    watch = LongStays(run, MAINS)
    assert watch.have_grown()
    write(run, {"process": "7-100", "ended_s": 150.0, "status": 0})
    assert not watch.have_grown()


def test_lines_that_are_damaged_or_not_complete_are_left_out(run: Path) -> None:
    write(run, '{"stays":', '{"process":7,"stays":{}}', '["stays":1]', '{"stays":{}}')
    write(run, stays(7, 100.0, 146.5), stays(8, 100.0, 146.5))
    with (probe_folder(run) / "n1-stacks-5.jsonl").open("a") as file:
        file.write('{"process":"7-100","stays":{}')
    assert LongStays(run, MAINS).have_grown()


@pytest.mark.parametrize("begins", [True, False])
def test_of_a_long_file_only_the_end_is_read(run: Path, begins: bool) -> None:
    filler = {"process": "7-100", "seen": {}, "x": "x" * 1000}
    write(run, *[filler] * (300 if begins else 1))
    watch = LongStays(run, MAINS)
    assert not watch.have_grown()
    write(run, stays(7, 1.0, 90.0), *[filler] * (1 if begins else 1200))
    write(run, stays(7, 100.0, 146.5), stays(8, 100.0, 146.5))
    assert watch.have_grown()


@pytest.mark.parametrize("mains", [(), (("n3", 7),)])
def test_without_processes_or_a_file_nothing_stays(
    run: Path, mains: tuple[tuple[str, int], ...]
) -> None:
    assert not LongStays(run, mains).have_grown()


def test_a_recording_that_is_gone(tmp_path: Path) -> None:
    assert not LongStays(tmp_path / "gone", MAINS).have_grown()
