"""What a node's stack sampler wrote, as it is read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from teho.model.stack import State
from teho.model.watched import WatchedProcess
from teho.store.probe import processes_in, watched_processes

HEAD = {"probe": 1, "pid": 7, "parent_pid": 1, "python": "3.11.7", "program": [], "began_s": 100.0}
FRAMES: list[dict] = [
    {"frame": 0, "is": ["/home/ann/a.py", "f", 3, "hash(data)"]},
    {"frame": 1, "is": ["/home/ann/a.py", "f", 4, "total += x"]},
    {"frame": 2, "is": ["/home/ann/a.py", "f", 5, "time.sleep(1)"]},
    {"stack": 0, "frames": [0]},
    {"stack": 1, "frames": [1]},
    {"stack": 2, "frames": [2]},
]


def slice_of(from_s: float, seen: dict, stayed: dict | None = None, **about: float) -> dict:
    return {
        "process": "7-100", "from_s": from_s, "until_s": from_s + 10.0, "queued_s": 0.0,
        "ran_s": 8.0, "seen": seen, "stayed": stayed or {}, **about,
    }  # fmt: skip


def read(
    run: Path, *lines: dict, steps: dict | None = None, own: Sequence[dict] = ()
) -> tuple[WatchedProcess, list[str]]:
    folder = run / "probe"
    folder.mkdir(parents=True)
    own = [HEAD, *([steps] if steps else []), *own, {"end_s": 140.0}]
    files = {"n-1-7-100": own, "n-1-stacks-9": [*FRAMES, *lines]}
    for name, written in files.items():
        text = "".join(json.dumps(line) + "\n" for line in written)
        (folder / f"{name}.jsonl").write_text(text)
    problems: list[str] = []
    (process,) = watched_processes(run, problems)
    return process, problems


def states(process: WatchedProcess) -> dict[tuple[int, State], float]:
    return {(one.frames[0].line, one.state): pytest.approx(one.wall_s) for one in process.stacks}


def test_a_call_that_was_seen_to_last_is_native_and_the_rest_python(tmp_path: Path) -> None:
    seen = {
        "0": {"running": [40, 4.0]},
        "1": {"running": [50, 5.0]},
        "2": {"sleeping": [10, 1.0]},
    }
    process, problems = read(tmp_path, slice_of(100.0, seen, {"0": [9, 1], "1": [0, 12]}))
    assert problems == []
    assert (process.node, process.from_outside) == ("n-1", True)
    assert states(process) == {
        (3, State.NATIVE): 4.0,
        (4, State.PYTHON): 5.0,
        (5, State.SLEEPING): 1.0,
    }
    assert process.wall_s == 40.0
    assert process.independent_samples == pytest.approx(100)


def test_without_such_samples_a_call_counts_as_lasting(tmp_path: Path) -> None:
    seen = {"0": {"running": [40, 4.0]}, "1": {"running": [50, 5.0]}}
    process, _ = read(tmp_path, slice_of(100.0, seen))
    assert states(process) == {(3, State.NATIVE): 4.0, (4, State.PYTHON): 5.0}


def test_time_without_a_core_is_taken_first_from_lines_that_wait(tmp_path: Path) -> None:
    # Of 10 s in which it could run, it had no core for 4: 1 s after sleeping, 3 of the other 9.
    seen = {
        "0": {"running": [90, 9.0]},
        "2": {"sleeping": [50, 5.0], "running": [10, 1.0]},
    }
    one = slice_of(100.0, seen, {"0": [9, 0]}, queued_s=4.0, ran_s=6.0, until_s=115.0)
    process, _ = read(tmp_path, one)
    assert states(process) == {
        (3, State.NATIVE): 6.0,
        (3, State.CORE): 3.0,
        (5, State.SLEEPING): 5.0,
        (5, State.CORE): 1.0,
    }


def test_waiting_is_not_seen_for_longer_than_the_kernel_counted(tmp_path: Path) -> None:
    # It was seen to wait for 6 of 10 s with 400 looks, and the kernel counts 5.5 s of running.
    seen = {"0": {"running": [160, 4.0]}, "2": {"sleeping": [240, 6.0]}}
    # A slice in which it only ran keeps its time.
    only = {"0": {"running": [400, 10.0]}}
    stayed = {"0": [9, 0]}
    process, _ = read(
        tmp_path,
        slice_of(100.0, seen, stayed, ran_s=5.5),
        slice_of(110.0, only, stayed, ran_s=10.0),
    )
    assert states(process) == pytest.approx({(3, State.NATIVE): 15.5, (5, State.SLEEPING): 4.5})


def test_a_difference_from_the_kernels_count_by_chance_changes_nothing(tmp_path: Path) -> None:
    seen = {"0": {"running": [16, 4.0]}, "2": {"sleeping": [24, 6.0]}}
    process, _ = read(tmp_path, slice_of(100.0, seen, {"0": [9, 0]}, ran_s=5.0))
    assert states(process) == {(3, State.NATIVE): 4.0, (5, State.SLEEPING): 6.0}


def test_a_sample_just_after_a_wait_counts_for_the_wait(tmp_path: Path) -> None:
    # It was found able to run for 9 of 10 s; the kernel counted 7: 2 of the 4 s at the line that
    # waits were waiting.
    seen = {
        "0": {"running": [50, 5.0]},
        "2": {"sleeping": [10, 1.0], "running": [40, 4.0]},
    }
    stayed = {"0": [9, 0], "2": [0, 9]}
    process, _ = read(tmp_path, slice_of(100.0, seen, stayed, ran_s=6.9, queued_s=0.1))
    assert states(process) == {
        (3, State.NATIVE): 5.0,
        (5, State.SLEEPING): 3.0,
        (5, State.PYTHON): 2.0,
    }


def test_a_thread_found_on_another_core_had_most_likely_waited(tmp_path: Path) -> None:
    # Found able to run for 8 of 10 s, of which the kernel counted 6: 2 s of the 5 at the line that
    # waits or on another core were waiting.
    seen = {
        "0": {"running": [30, 3.0], "moved": [30, 3.0]},
        "2": {"sleeping": [20, 2.0], "moved": [20, 2.0]},
    }
    process, _ = read(tmp_path, slice_of(100.0, seen, {"0": [9, 0], "2": [0, 9]}, ran_s=6.0))
    assert states(process) == {
        (3, State.NATIVE): 3.0 + 3.0 * 3 / 5,
        (5, State.SLEEPING): 4.0,
        (5, State.PYTHON): 2.0 * 3 / 5,
    }


@pytest.mark.parametrize(
    ("moved_s", "woken_s"),
    [(0.6, 0.0), (1.5, 0.9)],
    ids=["as often as at the other line", "more often"],
)
def test_a_thread_that_changes_cores_by_itself_had_not_waited(
    tmp_path: Path, moved_s: float, woken_s: float
) -> None:
    # At the other line it is found on another core in one of five cases: so often is not a sign.
    seen = {
        "0": {"running": [30 - 10 * moved_s, 3.0 - moved_s], "moved": [10 * moved_s, moved_s]},
        "1": {"running": [24, 2.4], "moved": [6, 0.6]},
        "2": {"sleeping": [40, 4.0]},
    }
    process, _ = read(tmp_path, slice_of(100.0, seen, {"0": [9, 0], "1": [0, 9]}, ran_s=5.0))
    assert states(process) == {
        (3, State.NATIVE): 3.0 - woken_s,
        (4, State.PYTHON): 3.0,
        (5, State.SLEEPING): 4.0 + woken_s,
    }


def test_a_wait_that_ended_too_soon_has_the_reason_of_the_others_at_its_line(
    tmp_path: Path,
) -> None:
    seen = {
        "0": {"running": [60, 6.0]},
        "2": {"sleeping": [20, 2.0], "waiting": [10, 1.0], "running": [10, 1.0]},
    }
    stayed = {"0": [9, 0], "2": [0, 9]}
    process, _ = read(tmp_path / "a", slice_of(100.0, seen, stayed, ran_s=7.0))
    assert states(process) == {
        (3, State.NATIVE): 6.0,
        (5, State.SLEEPING): 3.0,
        (5, State.PYTHON): 1.0,
    }
    # Where it hardly ever waits, another thread had taken its core.
    seen = {"0": {"running": [95, 9.5], "waiting": [5, 0.5]}}
    process, _ = read(tmp_path / "b", slice_of(100.0, seen, stayed, ran_s=10.0))
    assert states(process) == {(3, State.NATIVE): 10.0}
    # Where no wait has a known reason, it has none.
    seen = {"2": {"running": [50, 5.0], "waiting": [50, 5.0]}}
    process, _ = read(tmp_path / "c", slice_of(100.0, seen, stayed, ran_s=5.0))
    assert states(process) == {(5, State.PYTHON): 5.0, (5, State.WAITING): 5.0}


def test_on_whichever_core_it_runs_if_it_waits_no_longer(tmp_path: Path) -> None:
    seen = {"0": {"moved": [50, 5.0]}, "2": {"sleeping": [50, 5.0]}}
    for number, about in enumerate(({"ran_s": 0.0}, {"ran_s": 5.0})):
        process, _ = read(tmp_path / str(number), slice_of(100.0, seen, {"0": [9, 0]}, **about))
        assert states(process) == {(3, State.NATIVE): 5.0, (5, State.SLEEPING): 5.0}
    # It was never seen to wait, so the line at which it waits is not known.
    process, _ = read(tmp_path / "2", slice_of(100.0, {"0": {"moved": [50, 5.0]}}, {"0": [9, 0]}))
    assert states(process) == {(3, State.NATIVE): 5.0}


@pytest.mark.parametrize("about", [{"ran_s": 0.0}, {"ran_s": 9.0}])
def test_samples_stay_unchanged_if_the_kernel_counts_no_less(tmp_path: Path, about: dict) -> None:
    seen = {"2": {"sleeping": [10, 1.0], "running": [90, 9.0]}}
    process, _ = read(tmp_path, slice_of(100.0, seen, {"2": [0, 9]}, **about))
    assert states(process) == {(5, State.SLEEPING): 1.0, (5, State.PYTHON): 9.0}


def test_a_line_that_seldom_waits_is_not_taken_for_one_that_does(tmp_path: Path) -> None:
    seen = {"0": {"lock": [5, 0.5], "running": [95, 9.5]}}
    process, _ = read(tmp_path, slice_of(100.0, seen, {"0": [9, 0]}, ran_s=8.0))
    assert states(process) == {(3, State.LOCK): 0.5, (3, State.NATIVE): 9.5}


def test_the_text_of_a_notebook_s_line_comes_from_its_process(tmp_path: Path) -> None:
    frames = [
        {"frame": 7, "is": ["/tmp/ipykernel_7/1.py", "f", 3, "", 8, 20]},
        {"frame": 8, "is": ["/tmp/ipykernel_7/1.py", "f", 4, "", 0, 4]},
        {"frame": 9, "is": ["/tmp/ipykernel_7/1.py", "f", 4, "", 7, 9]},
        *({"stack": number, "frames": [number]} for number in (7, 8, 9)),
    ]
    seen = {str(number): {"running": [40, 4.0]} for number in (7, 8, 9)}
    told = [
        {"text": "    x = hash(héllo) + 1", "of": ["/tmp/ipykernel_7/1.py", 3]},
        {"text": "f(1) + g(2)", "of": ["/tmp/ipykernel_7/1.py", 4]},
    ]
    process, problems = read(tmp_path, *frames, slice_of(100.0, seen), own=told)
    assert problems == []
    texts = {one.frames[0].line: one.frames[0].text for one in process.stacks}
    # Two calls of line 4 that cannot be told from each other.
    assert texts == {3: "hash(héllo)", 4: "f(1) + g(2)"}


def test_little_time_without_a_core_is_not_reported(tmp_path: Path) -> None:
    seen = {"0": {"running": [90, 9.0]}}
    process, _ = read(tmp_path, slice_of(100.0, seen, queued_s=0.1, ran_s=8.9))
    assert states(process) == {(3, State.NATIVE): 9.0}


def test_what_was_before_the_first_step_and_in_each_quarter(tmp_path: Path) -> None:
    # Steps of 1 s, the first one done at 121: it began at 120.
    steps = {"steps": 11, "first_s": 121.0, "last_s": 131.0}
    lines = [
        slice_of(100.0, {"0": {"running": [100, 10.0]}}),
        slice_of(110.0, {"0": {"running": [100, 10.0]}}),
        slice_of(120.0, {"2": {"sleeping": [100, 10.0]}}),
        slice_of(130.0, {"2": {"sleeping": [100, 10.0]}}),
    ]
    process, _ = read(tmp_path, *lines, steps=steps)
    assert [(one.frames[0].line, one.wall_s) for one in process.set_up] == [(3, 20.0)]
    assert [[one.frames[0].line for one in part] for part in process.parts] == [[3], [3], [5], [5]]


def test_rarer_samples_count_less(tmp_path: Path) -> None:
    # 10 s by 100 looks and 10 s by 10: 400 / (1 + 10) of equal weight.
    process, _ = read(
        tmp_path,
        slice_of(100.0, {"0": {"running": [100, 10.0]}}),
        slice_of(110.0, {"0": {"running": [10, 10.0]}}),
    )
    assert process.independent_samples == pytest.approx(400 / 11)


def test_why_a_process_could_not_be_read(tmp_path: Path) -> None:
    process, problems = read(tmp_path, {"process": "7-100", "failed": "its Python is pypy"})
    assert (process.from_outside, process.why_inside) == (False, "its Python is pypy")
    assert problems == []


def test_a_sampler_that_gave_up_is_a_line_of_the_report(tmp_path: Path) -> None:
    _, problems = read(tmp_path, {"gave_up": "OSError: no"}, {"full": True})
    assert len(problems) == 2
    assert "the stack sampler failed before the end of the run: OSError: no" in problems[0]
    assert "is full" in problems[1]


def test_in_the_spool_files_have_no_node(tmp_path: Path) -> None:
    seen = {"0": {"running": [40, 4.0]}}
    texts = {"7-100": [HEAD], "stacks-9": [*FRAMES, slice_of(100.0, seen)]}
    for name, lines in texts.items():
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (tmp_path / f"{name}.jsonl").write_text(text)
    problems: list[str] = []
    (process,) = processes_in(tmp_path, problems)
    assert (problems, process.from_outside) == ([], True)
