"""Scripts with `module load`, run by the real Environment Modules and by the real Lmod."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

MODULES = {
    "Environment Modules": Path("/usr/share/modules/init/bash"),
    "Lmod": Path("/usr/share/lmod/lmod/init/bash"),
}


@pytest.fixture(params=MODULES)
def module_system(request: pytest.FixtureRequest) -> Path:
    init = MODULES[request.param]
    if not init.exists():
        pytest.skip(f"{request.param} is not installed; tests/debian-packages.sh does, as root")
    return init


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Make the modules of a site: TensorFlow 2.12 and 2.18, each with its own packages."""
    for version in ("2.12", "2.18"):
        packages = tmp_path / "apps" / version
        for name, number in (("tensorflow", f"{version}.0"), ("nvidia_cuda_runtime_cu12", "12.2")):
            info = packages / f"{name}-{number}.dist-info"
            info.mkdir(parents=True)
            (info / "METADATA").write_text(
                f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n"
            )
            (info / "RECORD").touch()
        module = tmp_path / "modulefiles" / "tensorflow" / version
        module.parent.mkdir(parents=True, exist_ok=True)
        module.write_text(f"#%Module\nprepend-path PYTHONPATH {packages}\n")
    wheel = tmp_path / "wheels" / "whatshap-2.3-py3-none-any.whl"
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        info = "whatshap-2.3.dist-info"
        archive.writestr("whatshap.py", "")
        archive.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: whatshap\nVersion: 2.3\n"
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n"
                                          "Tag: py3-none-any\n")  # fmt: skip
        archive.writestr(f"{info}/RECORD", "")
    (tmp_path / "bin").mkdir()
    for name, words in (("teho", f"{sys.executable} -m teho"), ("python3", sys.executable)):
        command = tmp_path / "bin" / name
        command.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        command.chmod(0o755)
    return tmp_path


def run(script: str, init: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Run a script in a login shell's stead: with `module`, and the site's modules."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        ["bash", "-c", f". {init}; module use {site}/modulefiles\n{script}"],
        cwd=site,
        env={
            **clean,
            "PATH": f"{site}/bin:{os.environ['PATH']}",
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": f"{site}/wheels",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_a_module_with_packages_on_top_and_in_a_job(module_system: Path, site: Path, teho) -> None:
    asked = ["--cluster", "puhti", "--framework", "tensorflow", "--version", "2.12", "--with",
             "whatshap", "--place", site / "my envs"]  # fmt: skip
    script = teho("env", "plan", *asked).stdout
    done = run(script, module_system, site)
    assert done.returncode == 0, done.stderr
    lock = (site / "tensorflow-gpu.lock.txt").read_text().splitlines()
    assert {"tensorflow==2.12.0", "whatshap==2.3"} <= set(lock)
    assert "TensorFlow: for the GPU" in done.stdout

    plan = teho("env", "plan", *asked, "--format", "json").stdout
    (site / "plan.json").write_text(plan)
    options = ["--cluster", "puhti", "--even-if-retired", "--account", "project_1", "--env",
               site / "plan.json", "--script"]  # fmt: skip
    job = teho("plan", *options, "--", "python", "-c", "pass").stdout
    software = job.partition("# The software.\n")[2].partition("\n\n")[0]
    seen = (
        "from importlib import metadata as m; print(m.version('tensorflow'), m.version('whatshap'))"
    )
    done = run(f'{software}\npython -c "{seen}"', module_system, site)
    assert done.stdout.split() == ["2.12.0", "2.3"], done.stderr


def test_the_default_version_and_one_that_is_not_there(
    module_system: Path, site: Path, teho
) -> None:
    asked = ["--cluster", "puhti", "--framework", "tensorflow"]
    assert run(teho("env", "plan", *asked).stdout, module_system, site).returncode == 0
    lock = (site / "tensorflow-gpu.lock.txt").read_text()
    assert "tensorflow==2.18.0" in lock
    (site / "tensorflow-gpu.lock.txt").unlink()
    done = run(teho("env", "plan", *asked, "--version", "2.7").stdout, module_system, site)
    assert done.returncode != 0
    assert not (site / "tensorflow-gpu.lock.txt").exists()
