from __future__ import annotations

import json
from pathlib import Path

from teho.experiment.progress import HasNews
from teho.model.stack import State
from teho.model.watched import Wait
from teho.store.probe import processes_in, watched_processes

HEAD = {"probe": 1, "pid": 7, "parent_pid": 1, "python": "3.11.7", "program": [], "began_s": 10.0}
FRAME = {"frame": 4, "is": ["/home/ann/a.py", "f", 3, "g()"]}
STACK = {"stack": 0, "frames": [4]}


def seen(until_s: float) -> dict:
    return {"from_s": until_s - 1, "until_s": until_s, "cost_s": 0.1, "seen": {"0": [9, 1, 0.5, 0]}}


def written(run: Path, *lines: object, rest: str = "") -> None:
    (run / "probe").mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(line) + "\n" for line in lines) + rest
    (run / "probe" / "n-1-7-10.jsonl").write_text(text)


def test_what_was_seen_adds_up(tmp_path: Path) -> None:
    # Its last line is not whole yet.
    written(tmp_path, HEAD, FRAME, STACK, seen(11.0), seen(12.0), rest='{"from_s": 12')
    problems: list[str] = []
    (process,) = watched_processes(tmp_path, problems)
    assert problems == []
    assert (process.node, process.pid, process.wall_s) == ("n-1", 7, 2.0)
    assert [(one.wall_s, one.samples, one.state) for one in process.stacks] == [
        (2.0, 18, State.NATIVE)
    ]
    assert process.stacks[0].frames[0].function == "f"


def test_the_newest_of_what_grows_counts(tmp_path: Path) -> None:
    loader = {"settings": {"num_workers": 2}, "made_at": None, "made": 1, "epochs": 1, "batch": {}}
    lines: list[dict] = [
        {"library": "numpy", "facts": {"version": "2.4", "blas_threads": 2}},
        {"library": "numpy", "facts": {"version": "2.4", "blas_threads": 1}},
        {"loader": 0, **loader, "batches": 1, "first_s": 0.5, "waits": {}},
        {"loader": 0, **loader, "batches": 3, "first_s": 0.5, "waits": {"11": [2, 0.003]}},
        {"steps": 3, "first_s": 10.2, "last_s": 10.8, "between": {"19": [2, 0.6]}},
        {"phases": {"epoch": 0.5}},
        {"phases": {"epoch": 0.75, "epoch/augment": 0.25}},
    ]
    written(tmp_path, HEAD, FRAME, STACK, seen(11.0), *lines)
    problems: list[str] = []
    (process,) = watched_processes(tmp_path, problems)
    assert problems == []
    assert process.libraries == {"numpy": {"version": "2.4", "blas_threads": 1}}
    (found,) = process.loaders
    assert (found.batches, found.wait_s) == (3, 0.503)
    assert process.progress[-1].steps == 3
    assert process.progress[-1].between == {19: Wait(2, 0.6)}
    assert process.phases == {"epoch": 0.75, "epoch/augment": 0.25}


def test_a_probe_that_gave_up_is_a_line_of_the_report(tmp_path: Path) -> None:
    written(tmp_path, HEAD, FRAME, STACK, seen(11.0), {"failed": "MemoryError: "})
    problems: list[str] = []
    (process,) = watched_processes(tmp_path, problems)
    assert process.wall_s == 1.0
    assert "the probe missed some data: MemoryError" in problems[0]


def test_a_file_that_is_none_is_a_line_of_the_report(tmp_path: Path) -> None:
    for lines in ([seen(11.0)], [7], [HEAD, {"stack": 0, "frames": [3]}], [HEAD, {"seen": 1}]):
        written(tmp_path, *lines)
        problems: list[str] = []
        assert watched_processes(tmp_path, problems) == []
        assert "does not contain the data that a probe writes" in problems[0]


def test_a_missing_folder_has_no_lines(tmp_path: Path) -> None:
    """A recorder takes the spool home while somebody looks."""
    problems: list[str] = []
    assert processes_in(tmp_path / "none", problems) == []
    assert not HasNews(tmp_path / "none")()
    assert problems == []
