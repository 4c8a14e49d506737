"""Parts of one step, recorded by nodes that share no files, become one recording."""

from __future__ import annotations

import json
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from step_tasks import JOB, only_run, start, wait
from teho.errors import NewerFormatError, RecordingError
from teho.model.run import RunState
from teho.store.layout import overview_file
from teho.store.merge import merge_parts
from teho.store.read import read_run, rows_of_node, run_state


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], list[str]]:
    """Record a step of four tasks on two nodes without common files; what they said, too."""
    homes = [tmp_path_factory.mktemp("n1"), tmp_path_factory.mktemp("n2")]
    programs = ["import time; time.sleep(1)"] * 3 + ["import time; time.sleep(1); exit(3)"]
    _, said = wait(start(homes, programs, nodes=2, report="brief"))
    return [only_run(home) for home in homes], said


@pytest.fixture
def parts(recorded: tuple[list[Path], list[str]], tmp_path: Path) -> list[Path]:
    """Return copies that a test may spoil."""
    return [shutil.copytree(part, tmp_path / f"part{n}") for n, part in enumerate(recorded[0])]


def edit(path: Path, change: Callable[[dict], None]) -> None:
    content = json.loads(path.read_bytes())
    change(content)
    path.write_text(json.dumps(content))


def test_each_node_reports_where_its_part_is(recorded: tuple[list[Path], list[str]]) -> None:
    parts, said = recorded
    for node, (directory, words) in enumerate(zip(parts, (said[:2], said[2:]), strict=True), 1):
        told = [text for text in words if text]
        assert len(told) == 1
        assert f"1 of 2 nodes are recorded in n{node}:{directory}" in told[0]
        assert "teho merge" in told[0]
    # The report is rank 0's to print.
    assert [len("".join(words).splitlines()) > 2 for words in (said[:2], said[2:])] == [True, False]


def test_parts_become_one_run(parts: list[Path], tmp_path: Path) -> None:
    assert [read_run(part).end for part in parts] == [None, None]
    merged = merge_parts(list(reversed(parts)), tmp_path / "home")
    run = read_run(merged)
    assert [node.name for node in run.nodes] == ["n1", "n2"]
    assert [task.rank for task in run.tasks] == [0, 1, 2, 3]
    assert run.step is not None
    assert run.step.began_on == "n1"
    assert run.end is not None
    assert run.end.exit_code == 3
    assert run_state(run, merged) is RunState.FINISHED
    assert run.id == merged.name
    assert run.id not in {part.name for part in parts}
    for part, node in zip(parts, ("n1", "n2"), strict=True):
        columns = ["elapsed_s", "job_cpu_s"]
        rows, before = (rows_of_node(at, node, "node", columns, []) for at in (merged, part))
        assert rows is not None
        assert before is not None
        assert rows.table.equals(before.table)
    for path in merged.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


def test_live_rows_are_taken_along(parts: list[Path], tmp_path: Path) -> None:
    sealed = parts[1] / "samples" / "n2.parquet"
    sealed.rename(parts[1] / "live" / "n2.0000.parquet")
    merged = merge_parts(parts, tmp_path / "home")
    assert (merged / "live" / "n2.0000.parquet").exists()
    assert rows_of_node(merged, "n2", "node", ["elapsed_s"], []) is not None


def test_overviews_are_taken_along(parts: list[Path], tmp_path: Path) -> None:
    overview = overview_file(parts[1], "n2")
    overview.write_bytes(b"of n2")
    merged = merge_parts(parts, tmp_path / "home")
    assert overview_file(merged, "n2").read_bytes() == b"of n2"


def test_the_same_part_twice_is_one(parts: list[Path], tmp_path: Path) -> None:
    again = shutil.copytree(parts[0], tmp_path / "again")
    run = read_run(merge_parts([*parts, again], tmp_path / "home"))
    assert [node.name for node in run.nodes] == ["n1", "n2"]


def test_one_node_with_two_contents_is_refused(parts: list[Path], tmp_path: Path) -> None:
    other = shutil.copytree(parts[0], tmp_path / "other")
    rows = other / "samples" / "n1.parquet"
    rows.write_bytes(rows.read_bytes() + b"x")
    with pytest.raises(RecordingError, match="different content for node n1") as caught:
        merge_parts([*parts, other], tmp_path / "home")
    assert str(parts[0]) in caught.value.found
    assert str(other) in caught.value.found


def test_one_task_with_two_ends_is_refused(parts: list[Path], tmp_path: Path) -> None:
    shutil.copy(parts[0] / "tasks" / "00001.json", parts[1] / "tasks")
    edit(parts[1] / "tasks" / "00001.json", lambda task: task["end"].update(exit_code=9))
    with pytest.raises(RecordingError, match="different content for rank 1"):
        merge_parts(parts, tmp_path / "home")


def test_parts_of_two_steps_are_refused(parts: list[Path], tmp_path: Path) -> None:
    edit(parts[1] / "run.json", lambda run: run["step"].update(key=f"slurm-test-{JOB}.1"))
    with pytest.raises(RecordingError, match=rf"step slurm-test-{JOB}\.1"):
        merge_parts(parts, tmp_path / "home")
    assert list((tmp_path / "home").rglob("*.json")) == []


def test_what_is_no_part_or_not_readable_is_refused(parts: list[Path], tmp_path: Path) -> None:
    edit(parts[1] / "run.json", lambda run: run.pop("step"))
    with pytest.raises(RecordingError, match="of one program"):
        merge_parts(parts, tmp_path / "home")
    edit(parts[1] / "run.json", lambda run: run.update(format=99))
    with pytest.raises(NewerFormatError):
        merge_parts(parts, tmp_path / "home")
    (parts[1] / "run.json").write_text("{")
    with pytest.raises(RecordingError):
        merge_parts(parts, tmp_path / "home")


def test_a_part_that_grows_is_refused(parts: list[Path], tmp_path: Path) -> None:
    edit(parts[1] / "nodes" / "n2.json", lambda node: node.update(sealed=False))
    with pytest.raises(RecordingError, match="is still being written"):
        merge_parts(parts, tmp_path / "home")


def test_a_clock_that_was_compared_with_another_node_no_longer_counts(
    parts: list[Path], tmp_path: Path
) -> None:
    clock = {"ahead_s": 5.0, "uncertainty_s": 0.1}
    edit(parts[1] / "nodes" / "n2.json", lambda node: node.update(clock=clock))
    run = read_run(merge_parts(parts, tmp_path / "home"))
    assert run.nodes[1].clock is None


def test_a_full_disk_leaves_nothing(
    parts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("teho.store.merge.replace_file", refuse)
    with pytest.raises(OSError, match="No space left"):
        merge_parts(parts, tmp_path / "home")
    assert list((tmp_path / "home" / "runs").iterdir()) == []


def test_the_command(teho, home: Path, parts: list[Path]) -> None:
    done = teho("merge", *parts)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    run_id = done.stdout.strip()
    assert (home / "runs" / run_id / "run.json").exists()
    assert "Nodes 2" in teho("report", run_id).stdout
    alone = teho("merge", parts[0])
    assert alone.returncode == 2
    assert "two or more" in alone.stderr
