"""Asking the accounting through a real command: one that refuses, hangs, or is not there."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import pytest
from sacct_rows import job, rows, step

from support import wait_for
from teho.errors import InputError, MissingCommandError, NoAnswerError, RefusedError
from teho.jobs import ask
from teho.schedulers import command
from teho.schedulers.backend import Selection
from teho.schedulers.slurm.backend import Slurm

SINCE = Selection(since=datetime(2026, 11, 1, tzinfo=timezone.utc), user="anna")
Stub = Callable[[str, str], None]


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stub:
    """Return what puts a command in front of the PATH."""
    folder = tmp_path / "bin of a site"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(ask, "_SILENCE_S", 30.0)
    monkeypatch.setattr(command, "_PAUSE_S", 0.01)

    def write(name: str, body: str) -> None:
        path = folder / name
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)

    return write


def prints(tmp_path: Path, text: str) -> str:
    path = tmp_path / "rows"
    path.write_bytes(text.encode(errors="surrogateescape"))
    return f"cat '{path}'"


def test_jobs_come_while_the_command_prints(stub: Stub, tmp_path: Path) -> None:
    first, second = rows(job("1"), step("1.batch"), job("2"), job("3")), rows(job("4"))
    (tmp_path / "a").write_text(first)
    (tmp_path / "b").write_text(second)
    stub("sacct", f"cat '{tmp_path}/a'; while [ ! -e '{tmp_path}/go' ]; do sleep 0.05; done; "
                  f"cat '{tmp_path}/b'")  # fmt: skip
    found = ask.jobs_since(Slurm(), SINCE)
    assert next(found).id == "1"
    (tmp_path / "go").touch()
    assert [one.id for one in found] == ["2", "3", "4"]


def test_the_command_ends_if_its_output_is_not_read(stub: Stub, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(rows(job("1"), job("2"), job("3")))
    stub("sacct", f"echo $$ > '{tmp_path}/pid'; cat '{tmp_path}/a'; exec sleep 600")
    found = ask.jobs_since(Slurm(), SINCE)
    assert next(found).id == "1"
    found.close()  # type: ignore[attr-defined]
    pid = int((tmp_path / "pid").read_text())
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), 10)


def test_accounting_that_is_switched_off_says_so(stub: Stub) -> None:
    stub("sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1")
    with pytest.raises(RefusedError, match="accounting storage is disabled"):
        list(ask.jobs_since(Slurm(), SINCE))


def test_a_database_that_is_down_is_no_answer(stub: Stub) -> None:
    stub("sacct", "echo 'sacct: error: slurm_persist_conn_open_without_init: failed' >&2; exit 1")
    with pytest.raises(NoAnswerError, match="cannot be reached"):
        ask.job_with_id(Slurm(), "4711")


def test_a_command_that_hangs_is_ended(
    stub: Stub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(ask, "_SILENCE_S", 0.3)
    stub("sacct", f"echo $$ > '{tmp_path}/pid'; exec sleep 600")
    began_s = time.monotonic()
    with pytest.raises(NoAnswerError, match="did not answer within"):
        list(ask.jobs_since(Slurm(), SINCE))
    assert time.monotonic() - began_s < 60
    pid = int((tmp_path / "pid").read_text())
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), 10)


def test_an_answer_that_is_no_table_names_the_command(stub: Stub, tmp_path: Path) -> None:
    stub("sacct", prints(tmp_path, "1|COMPLETED\x1f\x1e\n"))
    with pytest.raises(NoAnswerError, match="answer of sacct cannot be read"):
        ask.job_with_id(Slurm(), "1")


def test_a_name_that_is_not_utf_8_is_read(stub: Stub, tmp_path: Path) -> None:
    stub("sacct", prints(tmp_path, rows(job("1", JobName="\udcff\udcfe"))))
    (found,) = ask.job_with_id(Slurm(), "1")
    assert found.name == "\udcff\udcfe"


def test_an_array_s_number_means_all_its_tasks(stub: Stub, tmp_path: Path) -> None:
    stub("sacct", prints(tmp_path, rows(job("42_1"), job("42_2"))))
    assert [one.id for one in ask.job_with_id(Slurm(), "42")] == ["42_1", "42_2"]
    assert [one.id for one in ask.job_with_id(Slurm(), "42_2")] == ["42_2"]


def test_no_command_is_an_error_with_a_next_step(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="neither Slurm's `sacct` nor"):
        ask.accounting_here(tmp_path)
    with pytest.raises(MissingCommandError):
        list(command.lines_of(["sacct"], silence_s=1))


def test_whether_jobs_are_hidden_is_known_or_not(stub: Stub) -> None:
    stub("scontrol", "echo 'PrivateData             = jobs'")
    assert ask.hides_others(Slurm(), SINCE) is True
    stub("scontrol", "echo 'PrivateData             = none'")
    assert ask.hides_others(Slurm(), SINCE) is False
    stub("scontrol", "exit 1")
    assert ask.hides_others(Slurm(), SINCE) is None


@pytest.mark.parametrize("text", ["123", "123_4", "123+1", "123.4", "123.batch", "123;puhti"])
def test_ids_of_jobs(text: str) -> None:
    assert ask.is_job_id(text)


@pytest.mark.parametrize("text", ["", "last", "20261120-101944-x", "1_", "a1", "1;", "1/2"])
def test_what_is_no_id_of_a_job(text: str) -> None:
    assert not ask.is_job_id(text)


def test_commands_that_are_only_installed_are_passed_over(stub: Stub, tmp_path: Path) -> None:
    fatal = "sacct: fatal: Could not establish a configuration source"
    stub("sacct", f"echo '{fatal}' >&2; exit 1")
    stub("qacct", "echo 'error: job id 1 not found' >&2; exit 1")
    assert ask.accounting_here(tmp_path).name == "grid_engine"
    stub("qacct", "echo 'Please set the environment variable SGE_ROOT.' >&2; exit 1")
    assert ask.accounting_here(tmp_path).name == "slurm"
    stub("sacct", "true")
    assert ask.accounting_here(tmp_path).name == "slurm"
