"""`teho plan --env`: an environment of one's own in a job's script."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from teho.clusters.catalogue import load_catalogue
from teho.errors import InputError
from teho.software.activation import activation_of

CLUSTERS = load_catalogue({"XDG_CONFIG_HOME": "/nonexistent"})


@pytest.mark.parametrize(
    ("cluster", "env", "lines", "prefix"),
    [
        ("arc4", "torch", ("module load anaconda", "source activate torch"), ""),
        ("aire", "torch", ("module load miniforge", "conda activate torch"), ""),
        ("narval", "torch", ('eval "$(conda shell.bash hook)"', "conda activate torch"), ""),
        ("arc4", "a b.sif", ("module load apptainer",), "apptainer exec --nv 'a b.sif'"),
        ("roihu", "/x/e.sif", (), "apptainer exec --nv /x/e.sif"),
        ("lumi", "e.sif", (), "singularity exec --rocm e.sif"),
    ],
)
def test_a_name_and_a_container(
    cluster: str, env: str, lines: tuple[str, ...], prefix: str
) -> None:
    found = activation_of(env, CLUSTERS[cluster])
    assert (found.lines, found.run_prefix) == (lines, prefix)


def test_directories_are_recognised_by_their_content(tmp_path: Path) -> None:
    venv, conda, tykky = (tmp_path / name for name in ("a venv", "conda", "tykky"))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    for folder in (conda / "conda-meta", conda / "bin", tykky / "bin"):
        folder.mkdir(parents=True)
    (conda / "bin" / "activate").touch()
    (tykky / "bin" / "python").touch()
    cluster = CLUSTERS["roihu"]
    assert activation_of(str(venv), cluster).lines == (
        "module load python-data", f"source '{venv}/bin/activate'")  # fmt: skip
    assert activation_of(str(conda), cluster).lines[-1] == f"conda activate {conda}"
    assert activation_of(str(tykky), cluster).lines == (f'export PATH={tykky}/bin:"$PATH"',)
    with pytest.raises(InputError, match="has no bin/activate, no conda-meta and no bin/python"):
        activation_of(str(tmp_path), cluster)


def test_what_is_no_environment(tmp_path: Path) -> None:
    for env, words in (
        ("a b", "--env: 'a b'; expected the name of an environment"),
        (str(tmp_path / "no.json"), "No such file"),
    ):
        with pytest.raises(InputError, match=words):
            activation_of(env, CLUSTERS["arc4"])
    (tmp_path / "odd.json").write_text("{}")
    with pytest.raises(InputError, match=r"the JSON that `teho env plan --format json` writes"):
        activation_of(str(tmp_path / "odd.json"), CLUSTERS["arc4"])


def test_a_plan_goes_into_a_jobs_script(teho, tmp_path: Path) -> None:
    planned = teho(
        "env", "plan", "--cluster", "narval", "--framework", "pytorch", "--format", "json"
    )
    (tmp_path / "torch.json").write_text(planned.stdout)
    options = ["--account", "def-me", "--env", tmp_path / "torch.json", "--script"]
    done = teho("plan", "--cluster", "narval", *options, "--", "python", "train.py")
    assert done.returncode == 0, done.stderr
    software = done.stdout.partition("# The software.\n")[2].partition("\n\n")[0]
    assert 'pip install --no-index -r "$HOME/pytorch-gpu.lock.txt"' in software.splitlines()
    other = teho("plan", "--cluster", "fir", *options, "--", "python", "train.py")
    assert (other.returncode, other.stdout) == (2, "")
    assert "is for Narval, but the job is for Fir" in other.stderr


def test_a_container_is_before_the_command(teho) -> None:
    options = ["--account", "project_1", "--env", "torch.sif", "--script"]
    done = teho("plan", "--cluster", "roihu", *options, "--", "python", "train.py")
    assert "srun apptainer exec --nv torch.sif python train.py" in done.stdout.splitlines()


def test_env_and_framework_contradict_each_other(teho) -> None:
    options = ["--account", "project_1", "--env", "x", "--framework", "pytorch", "--script"]
    done = teho("plan", "--cluster", "roihu", *options, "--", "python", "train.py")
    assert done.returncode == 2
    assert "--env cannot be used together with --framework" in done.stderr
    done = teho("plan", "--cluster", "roihu", "--env", "x", "--", "python", "train.py")
    assert "--env has no effect without --script" in done.stderr
