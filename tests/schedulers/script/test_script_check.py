"""Scripts that look first: `teho doctor --in-job` ends a doomed job, and no other."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from teho.clusters.catalogue import load_cluster
from teho.model.request import Request
from teho.planner.answer import answer
from teho.schedulers.script.write import ScriptOptions, write_script


def script(cluster: str, *, command: str = "python", gpus: int = 1, teho: str = "teho") -> str:
    known = load_cluster(cluster, {})
    request = Request(
        command=(command, "train.py"), gpus=gpus, account=known.account.example, time_s=3600.0
    )
    option = answer(request, [known], even_if_retired=True).options[0]
    return write_script(option, known, ScriptOptions(check=True, teho=(teho,))).text


def line_of(text: str) -> str:
    (line,) = (line for line in text.splitlines() if "doctor" in line)
    return line


def test_it_is_before_the_program_and_after_the_software() -> None:
    text = script("puhti")
    assert (
        text.index("module load") < text.index("teho doctor --in-job") < text.index("srun python")
    )
    assert line_of(text) == "teho doctor --in-job || [ $? -ne 3 ] || exit 1"


def test_it_checks_every_node() -> None:
    lines = script("narval", gpus=8).splitlines()
    place = lines.index("  teho doctor --in-job || [ $? -ne 3 ] || exit 1")
    assert lines[place - 1] == (
        'srun --nodes="$SLURM_NNODES" --ntasks="$SLURM_NNODES" --ntasks-per-node=1 \\'
    )


def test_it_asks_the_python_that_the_program_names() -> None:
    text = script("arc4", command="/home/it's/bin/python3.12")
    assert line_of(text).startswith("teho doctor --in-job --python '/home/it'\\''s/bin/python3.12'")
    assert "--python" not in line_of(script("arc4", command="python3"))


def test_the_nodes_python_counts_for_no_container() -> None:
    assert line_of(script("lumi")) == "teho doctor --in-job --python - || [ $? -ne 3 ] || exit 1"


@pytest.mark.parametrize(("code", "runs"), [*((code, True) for code in (0, 1, 2, 127)), (3, False)])
@pytest.mark.parametrize("shell", ["bash", "bash -e"])
def test_only_exit_code_3_ends_the_job(tmp_path: Path, code: int, runs: bool, shell: str) -> None:
    teho = tmp_path / "teho"
    teho.write_text(f"#!/bin/sh\nexit {code}\n")
    teho.chmod(0o755)
    line = line_of(script("arc4", teho=str(teho)))
    done = subprocess.run(
        [*shell.split(), "-c", f"{line}\necho trained"], capture_output=True, text=True, check=False
    )
    assert done.returncode == (0 if runs else 1)
    assert done.stdout == ("trained\n" if runs else "")
