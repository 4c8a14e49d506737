"""Scripts of the Alliance's clusters, run whole: modules, virtualenv and pip are real.

The wheelhouse is the test's own, with a few lines of Python in each wheel. pip is told of it as
there, by a file that the Python module names; and of a registry at which nobody answers, so that
a command without `--no-index` shows.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import module_site
import pytest
from module_site import write_command, write_module, write_wheel

# The Alliance's; `test_env_modules.py` runs scripts with the other too.
pytestmark = [
    pytest.mark.parametrize("module_system", ["Lmod"], indirect=True),
    pytest.mark.drawn(1, group="environments"),
]

BUILD = "computecanada"
TRAIN = "print('begun'); import torch; print(torch.__version__, torch.__file__)\n"
REGISTRY = "http://127.0.0.1:9/simple"
# Of one node: what the step asks for, and then its command.
SRUN = 'while [[ $1 == -* ]]; do case $1 in -N | -n) shift 2 ;; *) shift ;; esac; done; exec "$@"'


def add_torch(wheels: Path, version: str) -> Path:
    files = {
        "torch/__init__.py": "import numpy\nfrom torch.version import __version__\n",
        "torch/version.py": f"__version__ = '{version}+{BUILD}'\ncuda = '12.6'\n",
    }
    return write_wheel(wheels, "torch", f"{version}+{BUILD}", files, ["numpy"])


class Site(NamedTuple):
    """A cluster of the Alliance, as far as these scripts see one."""

    folder: Path
    init: Path
    teho: Callable[..., subprocess.CompletedProcess[str]]

    @property
    def home(self) -> Path:
        return self.folder / "my home"

    @property
    def lock(self) -> Path:
        return self.home / "pytorch-gpu.lock.txt"

    def run(self, script: str, cwd: str, **job: str) -> subprocess.CompletedProcess[str]:
        done = module_site.run(
            script,
            self.init,
            self.folder,
            cwd=self.folder / cwd,
            PATH="/usr/bin:/bin",
            HOME=str(self.home),
            TMPDIR=str(self.folder / "tmp"),
            PIP_INDEX_URL=REGISTRY,
            PIP_RETRIES="0",
            **job,
        )
        assert REGISTRY not in done.stdout + done.stderr
        return done

    def install(self, *asked: str) -> subprocess.CompletedProcess[str]:
        """Run what `teho env plan` writes; keep the plan for jobs."""
        words = ["env", "plan", *asked, "--framework", "pytorch"]
        plan = self.teho(*words, "--format", "json").stdout
        (self.home / "torch.json").write_text(plan)
        return self.run(self.teho(*words).stdout, "my home")

    def job(self, cluster: str, number: int = 1) -> subprocess.CompletedProcess[str]:
        """Run a whole job's script, from another directory than the installation."""
        words = ["--cluster", cluster, "--account", "def-me", "--env", self.home / "torch.json"]
        planned = self.teho("plan", *words, "--script", "--", "python", "train.py")
        assert planned.returncode == 0, planned.stderr
        return self.run(
            planned.stdout,
            "project",
            SLURM_JOB_ID=str(number),
            SLURM_NNODES="1",
            SLURM_CPUS_PER_TASK="1",
            SLURM_TMPDIR=str(self.disk(number)),
        )

    def disk(self, number: int) -> Path:
        """Return a job's own disk of its node."""
        folder = self.folder / "node" / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        return folder


@pytest.fixture
def site(tmp_path: Path, module_system: Path, teho) -> Site:
    made = Site(tmp_path, module_system, teho)
    for folder in (made.home, tmp_path / "project", tmp_path / "tmp"):
        folder.mkdir()
    (tmp_path / "project" / "train.py").write_text(TRAIN)
    wheels, apps = tmp_path / "wheels", tmp_path / "apps"
    write_wheel(wheels, "numpy", f"2.1.1+{BUILD}", {"numpy.py": ""})
    write_wheel(wheels, "torchvision", f"0.21.0+{BUILD}", {"torchvision.py": ""}, ["torch==2.6.0"])
    for version in ("2.5.1", "2.6.0"):
        add_torch(wheels, version)
    (tmp_path / "pip.conf").write_text(f"[global]\nfind-links = {wheels}\n")
    write_command(apps / "std" / "avail_wheels", f'ls {wheels} | grep "^$1-"')
    for name in ("python", "python3"):
        write_command(apps / "python" / name, f'exec {sys.executable} "$@"')
    write_command(apps / "python" / "virtualenv", f'exec {sys.executable} -m virtualenv "$@"')
    write_command(apps / "python" / "pip", "echo 'no environment is active' >&2", "exit 9")
    write_module(tmp_path, "StdEnv/2023", f"prepend-path PATH {apps}/std")
    write_module(tmp_path, "cuda/12.6", "setenv CUDA_HOME /opt/cuda")
    write_module(tmp_path, "python/3.11.5", f"prepend-path PATH {apps}/python",
                 f"setenv PIP_CONFIG_FILE {tmp_path}/pip.conf")  # fmt: skip
    write_command(tmp_path / "bin" / "teho", f'exec {sys.executable} -m teho "$@"')
    write_command(tmp_path / "bin" / "srun", SRUN)
    return made


def torch_of(done: subprocess.CompletedProcess[str]) -> tuple[str, Path]:
    """Return what the program told: the version of torch, and where it lies."""
    version, _, file = done.stdout.partition("begun\n")[2].strip().partition(" ")
    return version, Path(file)


def test_each_job_installs_on_its_own_disk_what_was_tried_once(site: Site) -> None:
    done = site.install("--cluster", "narval", "--with", "torchvision")
    assert done.returncode == 0, done.stderr
    assert f"torch-2.6.0+{BUILD}-py3-none-any.whl" in done.stdout.splitlines()
    assert "PyTorch: for the GPU" in done.stdout
    tried = {"numpy": "2.1.1", "torch": "2.6.0", "torchvision": "0.21.0"}
    assert site.lock.read_text().splitlines() == [f"{a}=={b}+{BUILD}" for a, b in tried.items()]
    assert list((site.folder / "tmp").iterdir()) == []

    add_torch(site.folder / "wheels", "2.7.1")  # the lock does not follow
    for number in (1, 2):
        done = site.job("narval", number)
        assert done.returncode == 0, done.stderr
        version, file = torch_of(done)
        assert version == f"2.6.0+{BUILD}"
        assert file.is_relative_to(site.disk(number) / "env")


def test_an_environment_that_is_made_once_and_read_by_jobs(site: Site) -> None:
    done = site.install("--cluster", "trillium", "--version", "2.5")
    assert done.returncode == 0, done.stderr
    assert "PyTorch: for the GPU" in done.stdout
    assert site.lock.read_text().splitlines() == [f"numpy==2.1.1+{BUILD}", f"torch==2.5.1+{BUILD}"]
    done = site.job("trillium")
    assert done.returncode == 0, done.stderr
    version, file = torch_of(done)
    assert version == f"2.5.1+{BUILD}"
    assert file.is_relative_to(site.home / "pytorch-gpu")


def test_a_wheel_that_the_site_lacks_ends_installation_and_job(site: Site) -> None:
    done = site.install("--cluster", "narval", "--with", "nosuch")
    assert done.returncode != 0
    assert "nosuch" in done.stderr
    assert not site.lock.exists()
    assert list((site.folder / "tmp").iterdir()) == []

    for number, lock in enumerate((None, f"torch==2.6.0+{BUILD}\nnosuch==1.0\n")):
        if lock is not None:
            site.lock.write_text(lock)
        done = site.job("narval", number)
        assert done.returncode != 0
        assert ("nosuch==1.0" if lock else str(site.lock)) in done.stderr
        assert "begun" not in done.stdout
