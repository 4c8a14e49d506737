"""Scripts with `module load`, run by the real Environment Modules and by the real Lmod."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import module_site
import pytest
from module_site import write_command, write_module, write_wheel

pytestmark = pytest.mark.drawn(1, group="environments")


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
        write_module(tmp_path, f"tensorflow/{version}", f"prepend-path PYTHONPATH {packages}")
    write_wheel(tmp_path / "wheels", "whatshap", "2.3", {"whatshap.py": ""})
    for name, words in (("teho", f"{sys.executable} -m teho"), ("python3", sys.executable)):
        write_command(tmp_path / "bin" / name, f'exec {words} "$@"')
    return tmp_path


def run(script: str, init: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Run a script at the site; pip has its wheels instead of a registry's."""
    return module_site.run(
        script,
        init,
        site,
        PIP_NO_INDEX="1",
        PIP_FIND_LINKS=f"{site}/wheels",
        PIP_DISABLE_PIP_VERSION_CHECK="1",
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
