"""Scripts with conda, run whole; conda itself is a stand-in that notes how it was called."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
from module_site import run, write_command, write_module

pytestmark = pytest.mark.drawn(1, group="environments")

CONDA = r"""
envs=${0%/*/*}/envs
printf '%q ' "${CONDA_OVERRIDE_CUDA-none}" "$@" >> "${envs%/*}/asked"; echo >> "${envs%/*}/asked"
case $1 in
  create) mkdir -p "$envs/$3/bin"
    printf '#!/bin/sh\necho "program: $0"\n' > "$envs/$3/bin/python"
    chmod +x "$envs/$3/bin/python" ;;
  list | env) echo file:///conda-forge/linux-64/pytorch-2.13.0-cuda129_py313h1_300.conda ;;
  shell*) echo "${0##*/}() { PATH=$envs/\$2/bin:\$PATH; }" ;;
  *) exit 2 ;;
esac"""


@pytest.mark.parametrize("module_system", ["Lmod"], indirect=True)
@pytest.mark.parametrize(
    ("cluster", "tool"), [("arc4", ""), ("aire", "conda"), ("aire", "micromamba")]
)
def test_conda_hears_what_is_meant_and_a_job_has_its_environment(
    cluster: str, tool: str, tmp_path: Path, module_system: Path, teho
) -> None:
    sites, own = tmp_path / "apps", tmp_path / "own"
    for folder in (sites, own):
        for name in ("conda", "micromamba"):
            write_command(folder / "bin" / name, CONDA)
    write_command(sites / "bin" / "activate", f'PATH="{sites}/envs/$1/bin:$PATH"')
    for name in ("anaconda/2021.11", "miniforge/24.7.1"):
        write_module(tmp_path, name, f"prepend-path PATH {sites}/bin")
    write_command(tmp_path / "bin" / "teho", f'exec {sys.executable} -m teho "$@"')
    write_command(tmp_path / "bin" / "srun", 'exec "$@"')
    (tmp_path / "pytorch=2.13.9=cuda").touch()  # what an unquoted star would find
    path = f"{own}/bin:/usr/bin:/bin"

    asked = ["--cluster", cluster, "--framework", "pytorch", "--driver", "535.104.05",
             "--with", "scipy >=1.14", *(["--tool", tool] if tool else [])]  # fmt: skip
    done = run(teho("env", "plan", *asked).stdout, module_system, tmp_path, PATH=path)
    assert done.returncode == 0, done.stderr
    assert "PyTorch: for the GPU" in done.stdout
    at = own if tool else sites
    create, listed = map(shlex.split, (at / "asked").read_text().splitlines())
    assert create[:4] == ["12.2", "create", "-n", "pytorch-gpu"]
    assert {"pytorch=2.13.*=cuda*", "scipy >=1.14"} <= set(create)
    assert listed[0] == "none"  # it stands before one command alone

    (tmp_path / "plan.json").write_text(teho("env", "plan", *asked, "--format", "json").stdout)
    options = ["--cluster", cluster, "--even-if-retired", "--env", tmp_path / "plan.json"]
    job = teho("plan", *options, "--script", "--", "python", "train.py")
    assert job.returncode == 0, job.stderr
    done = run(job.stdout, module_system, tmp_path, PATH=path, NSLOTS="1", SLURM_CPUS_PER_TASK="1")
    assert done.stdout == f"program: {at}/envs/pytorch-gpu/bin/python\n", done.stderr
