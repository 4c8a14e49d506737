"""`teho list`, `teho show` and `teho rm` of a step of several tasks."""

from __future__ import annotations

import json
from pathlib import Path

from step_tasks import JOB, only_run, start, wait


def test_a_step_is_listed_shown_and_deleted(teho, home: Path) -> None:
    assert teho("run", "-q", "--", "true").returncode == 0
    assert "Nodes" not in teho("list").stdout
    codes, _ = wait(start(home, ["import time; time.sleep(0.5)"] * 4, nodes=2))
    assert codes == [0] * 4

    # Both may have begun within one second; their ids then sort by what ran.
    heads, *rows = (line.split() for line in teho("list").stdout.splitlines())
    (row,) = (row for row in rows if "true" not in row)
    assert heads[:2] == ["Run", "Began"]
    assert heads[3:] == ["Time", "Ended", "Nodes", "Tasks", "GPUs", "Verdict", "Command"]
    assert "ok" in row
    assert row[row.index("ok") + 1 :][:2] == ["2", "4"]
    listed = json.loads(teho("list", "--format", "json").stdout)
    alone, step = sorted(listed, key=lambda run: run["tasks"])
    assert (alone["nodes"], alone["tasks"]) == (1, 1)
    assert (step["nodes"], step["tasks"], step["state"]) == (2, 4, "finished")

    shown = json.loads(teho("show", step["id"]).stdout)
    assert shown["step"]["key"] == f"slurm-test-{JOB}.0"
    assert [task["rank"] for task in shown["tasks"]] == [0, 1, 2, 3]
    assert [node["name"] for node in shown["nodes"]] == ["n1", "n2"]

    link = home / "steps" / f"slurm-test-{JOB}.0"
    assert link.readlink() == Path(step["id"])
    assert teho("rm", "--yes", alone["id"]).returncode == 0
    assert link.is_symlink()
    assert teho("rm", "--yes", step["id"]).returncode == 0
    assert not link.is_symlink()
    assert not (home / "runs" / step["id"]).exists()


def test_a_run_of_a_job_that_continued(teho, home: Path) -> None:
    """As `teho run --job` leaves it after Ctrl-C: nobody knows how the job ended."""
    assert teho("run", "-q", "--", "sleep", "1.5").returncode == 0
    path = only_run(home) / "run.json"
    run = json.loads(path.read_bytes())
    end = run["end"]
    run["end"] = {"at": end["at"], "elapsed_s": end["elapsed_s"], "job_state": "running"}
    path.write_text(json.dumps(run))
    assert "job still running" in teho("list").stdout
    for form, words in (
        ("text", "Ended the job was still running"),
        ("html", "the job was still running"),
        ("json", "the job was still running"),
        ("seff", "RUNNING"),
    ):
        report = teho("report", "--format", form)
        assert report.returncode == 0, report.stderr
        assert words in report.stdout
        assert "None" not in report.stdout
