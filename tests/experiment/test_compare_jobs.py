"""`teho compare --cluster`: each variant is an array of jobs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from experiment.comparing import CLUSTERS, STEPS, compare

Compare = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def sbatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder into which an `sbatch` puts its scripts; it refuses a third one."""
    folder = tmp_path / "submitted"
    folder.mkdir()
    path = tmp_path / "bin" / "sbatch"
    path.parent.mkdir()
    path.write_text(
        "#!/bin/bash\n"
        "[[ $1 == --test-only ]] && exit 0\n"
        f"count=$(ls {folder} | wc -l)\n"
        "if [ $count = 2 ]; then\n"
        "echo 'sbatch: error: Batch job submission failed: Invalid qos specification' >&2; exit 1\n"
        "fi\n"
        f'for word in "$@"; do [ -f "$word" ] && cp "$word" {folder}/$count; done\n'
        f"[ -f {folder}/$count ] || cat > {folder}/$count\n"
        "echo 471$count\n"
    )
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin:/bin")
    monkeypatch.setenv("TEHO_CLUSTERS", str(CLUSTERS))
    monkeypatch.chdir(tmp_path)
    return folder


def test_on_a_cluster_each_variant_is_an_array_of_jobs(sbatch: Path) -> None:
    done = compare("--cluster", "birch", "--on", "cpu:16,gpu:1", "--submit", "--account tree_1",
                   "--", "python", "fit.py", "a b")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["4710", "4711"]
    assert "after the jobs have ended, `teho compare --recorded compare=" in done.stderr
    tag = done.stderr.partition("--recorded ")[2].split("`")[0]
    measured = f"--tag {tag}", "--window 10s", "--keep-output", "fit.py 'a b'"
    for name, options in (
        ("0", ["--tag variant=cpu:16", "--cpus-per-task=16"]),
        ("1", ["--tag variant=gpu:1", "--gres=gpu:a100:1"]),
    ):
        script = (sbatch / name).read_text()
        for option in (*options, "--array=1-3", "--account=tree_1", *measured):
            assert option in script


@pytest.mark.parametrize(
    ("words", "window"), [(["--full"], None), (["--window", "1min"], "1min")], ids=["full", "1min"]
)
def test_jobs_run_as_long_as_runs_here_would(
    sbatch: Path, words: list[str], window: str | None
) -> None:
    done = compare("--cluster", "birch", "--on", "cpu:1", *words, "--submit", "--account a", "--",
                   "true")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.findall(r"--window (\S+)", (sbatch / "0").read_text()) == ([window] if window else [])


def test_a_job_ends_its_program_when_the_pace_is_known_and_has_done_well(
    teho: Compare, sbatch: Path, tmp_path: Path
) -> None:
    srun = tmp_path / "bin" / "srun"
    srun.write_text('#!/bin/bash\nexec "$@"\n')
    srun.chmod(0o755)
    (tmp_path / "train.py").write_text(STEPS)
    done = compare("--cluster", "birch", "--on", "cpu:1", "--window", "500ms", "--submit",
                   "--account a --framework none", "--", sys.executable, "train.py")  # fmt: skip
    job = {**os.environ, "SLURM_JOB_ID": "4710", "SLURM_CPUS_PER_TASK": "1"}
    assert subprocess.run(["bash", sbatch / "0"], env=job, timeout=120, check=False).returncode == 0
    tag = done.stderr.partition("--recorded ")[2].split("`")[0]
    assert "measured long enough" in teho("list", "--tag", tag).stdout


def test_jobs_submitted_before_a_refusal_are_named(sbatch: Path) -> None:
    done = compare("--cluster", "birch", "--on", "cpu:1,cpu:2,gpu:1", "--submit", "--account a",
                   "--", "true")  # fmt: skip
    assert done.returncode == 2
    assert "gpu:1 was not submitted; submitted: cpu:1 (job 4710), cpu:2 (job 4711)" in done.stderr


def test_without_on_a_gpu_is_compared_with_the_cores_that_come_with_it(sbatch: Path) -> None:
    done = compare("--cluster", "birch", "--submit", "--account a", "--", "true")
    assert "gpu:1 was not submitted; submitted: cpu:1 (job 4710), cpu:15 (job 4711)" in done.stderr
    assert "--cpus-per-task=15" in (sbatch / "1").read_text()


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ("thin", "with 1 GPU; expected variants, such as `--on cpu:1,"),
        ("gpu", "with 15 cores and without GPUs; expected variants, such as"),
    ],
)
def test_a_cluster_without_either_is_asked_about_before_anything_is_submitted(
    sbatch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nodes: str, said: str
) -> None:
    text = (CLUSTERS / "birch.toml").read_text()
    (tmp_path / "birch.toml").write_text(re.sub("kinds = .*", f'kinds = ["{nodes}"]', text))
    monkeypatch.setenv("TEHO_CLUSTERS", str(tmp_path))
    done = compare("--cluster", "birch", "--submit", "--account a", "--", "true")
    assert done.returncode == 2
    assert said in done.stderr
    assert list(sbatch.iterdir()) == []


def test_a_job_has_what_it_asks_for_and_not_all(sbatch: Path) -> None:
    done = compare("--cluster", "birch", "--on", "cpu:all", "--", "true")
    assert done.returncode == 2
    assert "--on cpu:all with --cluster; expected cpu:N or gpu:N" in done.stderr
    assert list(sbatch.iterdir()) == []
