"""Which code a run executed: real repositories, and what only looks like one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from teho.observe.revision import code_versions
from teho.store.index import find_run

GIT = shutil.which("git")
needs_git = pytest.mark.skipif(GIT is None, reason="git is not installed")


def git(folder: Path, *words: str) -> str:
    assert GIT
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    for who in ("AUTHOR", "COMMITTER"):
        env |= {f"GIT_{who}_NAME": "Maija", f"GIT_{who}_EMAIL": "maija@example.org"}
    done = subprocess.run([GIT, *words], cwd=folder, env=env, check=True, capture_output=True)
    return done.stdout.decode().strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "my-branch/1")
    (folder / "src/train.py").write_text("print(1)\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


@needs_git
def test_the_commit_and_the_file_of_the_program(repository: Path, tmp_path: Path) -> None:
    command = ("python", "-u", "src/train.py", "--lr", "0.1")
    found = code_versions(command, repository)
    assert found["commit"] == git(repository, "rev-parse", "HEAD")[:12]
    name, checksum = found["program file"].split()
    assert name == "train.py"
    assert len(checksum) == 8
    # A change that was not committed changes only the file.
    (repository / "src/train.py").write_text("print(2)\n")
    changed = code_versions(command, repository)
    assert changed["commit"] == found["commit"]
    assert changed["program file"] != found["program file"]
    # The repository is the one of the program, wherever it is started.
    absolute = code_versions(("python", str(repository / "src/train.py")), tmp_path)
    assert absolute == changed
    inside = code_versions(("./train.py",), repository / "src")
    assert inside == changed
    assert set(code_versions(("python", "-m", "package"), repository / "src")) == {"commit"}


@needs_git
def test_every_way_git_stores_a_commit(repository: Path, tmp_path: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD")[:12]
    git(repository, "pack-refs", "--all")
    assert not (repository / ".git/refs/heads/my-branch/1").exists()
    assert code_versions((), repository) == {"commit": commit}
    git(repository, "worktree", "add", "-q", "-b", "other", str(tmp_path / "worktree"))
    assert (tmp_path / "worktree/.git").is_file()
    assert code_versions((), tmp_path / "worktree/src") == {"commit": commit}
    git(repository, "checkout", "-q", "--detach")
    assert code_versions((), repository) == {"commit": commit}


@pytest.mark.parametrize(
    "head",
    ["", "ref: refs/heads/none", "ref: ../../secret", "ref: refs/../../../secret", "ref: /secret",
     "0123abc", "ref:refs/heads/main", "g" * 40, "\\0" * 40],
)  # fmt: skip
def test_what_only_resembles_a_repository(tmp_path: Path, head: str) -> None:
    (tmp_path / "secret").write_text("a" * 40)
    folder = tmp_path / "project"
    (folder / ".git/refs").mkdir(parents=True)
    (folder / ".git/HEAD").write_text(head)
    assert code_versions(("python", "none.py"), folder) == {}


def test_files_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: /nowhere\n")
    assert code_versions(("python", "train.py"), tmp_path) == {}
    (tmp_path / "train.py").mkdir()
    assert code_versions(("python", "train.py"), tmp_path) == {}
    os.mkfifo(tmp_path / "pipe.py")
    assert code_versions(("python", "pipe.py"), tmp_path) == {}
    with (tmp_path / "huge.py").open("wb") as file:
        file.truncate(1 << 30)
    assert code_versions(("python", "huge.py"), tmp_path) == {}
    assert code_versions(("python", "\0.py"), tmp_path) == {}


@needs_git
def test_a_recording_has_the_versions(teho, home: Path, repository: Path) -> None:
    (repository / "src/train.py").write_text("pass\n")
    done = subprocess.run(
        [sys.executable, "-m", "teho", "run", "-q", "--probe", "off", "--", sys.executable,
         "src/train.py"],
        cwd=repository, env={**os.environ, "TEHO_HOME": str(home)}, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    versions = json.loads((find_run("last", home) / "run.json").read_bytes())["versions"]
    assert versions["commit"] == git(repository, "rev-parse", "HEAD")[:12]
    assert versions["program file"].startswith("train.py ")
