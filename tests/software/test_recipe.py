"""The environment scripts of the documents that Teho began from, and of every cluster.

`tests/data/software/env/NAME.source` holds a document's own lines, `NAME.sh` what the command
writes. What of a document's lines is not in the script is listed here, with the reason. The fifth
document, `lumi-multiple-gpus.md`, installs nothing: LUMI's container is by its user guide.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple, get_args

import msgspec
import pytest

from support import check_golden
from teho.clusters.catalogue import load_catalogue
from teho.errors import InputError
from teho.model.cluster import EnvironmentKind
from teho.model.software import EnvironmentPlan, Framework
from teho.show.text.env_script import render_script
from teho.software import steps
from teho.software.recipe import EnvironmentRequest, NothingFits, plan_environment

DATA = Path(__file__).parents[1] / "data" / "software" / "env"
CLUSTERS = load_catalogue({"XDG_CONFIG_HOME": "/nonexistent"})

GPU_BUILD = "The release and a GPU build are asked for, so that conda cannot take a CPU-only one."
SINCE = "The document is of another year; the version is what the site has now, or its default."
OTHER = "The site's special applications are none of the four frameworks."


class Case(NamedTuple):
    """What one document installs."""

    arguments: str
    """Of `teho env plan`, as typed."""
    gone: dict[str, str]
    """Lines of the document that the script does not have -> why."""


CASES = {
    "arc4-pytorch": Case(
        "--cluster arc4 --framework pytorch --python 3.13",
        {"CONDA_OVERRIDE_CUDA=12.0 conda create -n pytorch-gpu python=3.13 pytorch": GPU_BUILD},
    ),
    "arc4-tensorflow": Case(
        "--cluster arc4 --framework tensorflow --python 3.12",
        {"CONDA_OVERRIDE_CUDA=12.0 conda create -n tensorflow-gpu python=3.12 tensorflow":
            GPU_BUILD},
    ),
    "csc-module": Case("--cluster puhti --framework tensorflow --version 2.12", {}),
    "csc-multi-module": Case("--cluster puhti --framework tensorflow --version 2.7", {}),
    "csc-lumi-module": Case("--cluster lumi --framework tensorflow", {
        "module use /appl/soft/ai/singularity/modulefiles/": OTHER}),
    "csc-on-top": Case("--cluster puhti --framework pytorch --with whatshap", {}),
    "csc-tykky": Case("--cluster roihu --framework jax --kind container --with optax", {}),
    "csc-venv": Case("--cluster roihu --framework pytorch --kind venv --place /projappl/p1", {}),
    "lumi-container": Case("--cluster lumi --framework pytorch --with optuna", {}),
    "alliance": Case(
        "--cluster narval --framework cupy --with jax --with torchvision --with matplotlib", {}),
    "alliance-trillium": Case("--cluster trillium --framework pytorch", {}),
    "aire-conda": Case(
        "--cluster aire --framework jax --driver 570.124.06 --tool micromamba", {}),
    "aire-apptainer": Case("--cluster aire --framework cupy --kind container", {}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_documents_environments(name: str, teho) -> None:
    case = CASES[name]
    done = teho("env", "plan", *shlex.split(case.arguments))
    assert (done.returncode, done.stderr) == (0, "")
    check_golden(DATA / f"{name}.sh", done.stdout)
    source = DATA / f"{name}.source"
    if source.exists():
        wanted = source.read_text().splitlines()
        missing = {line for line in wanted if line.strip() and line not in done.stdout.splitlines()}
        assert missing == set(case.gone)
    else:
        assert not case.gone


def test_the_line_of_the_arc4_document_but_for_the_build() -> None:
    script = (DATA / "arc4-pytorch.sh").read_text()
    start = "CONDA_OVERRIDE_CUDA=12.0 conda create -n pytorch-gpu "
    (line,) = [line for line in script.splitlines() if line.startswith(start)]
    assert "python=3.13" in shlex.split(line)
    assert "pytorch=2.13.*=cuda*" in shlex.split(line)


def every_plan() -> list[EnvironmentPlan]:
    plans = []
    for cluster in CLUSTERS.values():
        for framework in get_args(Framework):
            for kind in get_args(EnvironmentKind):
                asked = EnvironmentRequest(framework=framework, kind=kind, extra=("a b", "it's"))
                try:
                    found = plan_environment(cluster, asked)
                except InputError:
                    continue
                if isinstance(found, EnvironmentPlan):
                    plans.append(found)
    return plans


def test_each_cluster_has_a_way_to_pytorch() -> None:
    for cluster in CLUSTERS.values():
        found = plan_environment(cluster, EnvironmentRequest(framework="pytorch"))
        assert isinstance(found, EnvironmentPlan), cluster.name
        assert found.steps
        assert found.job.lines or found.job.run_prefix


def test_every_script_is_bash_and_shellcheck_finds_nothing(tmp_path: Path) -> None:
    paths = []
    for plan in every_plan():
        path = tmp_path / f"{plan.cluster}-{plan.framework}-{plan.kind}.sh"
        path.write_text(render_script(plan))
        job = tmp_path / f"{path.stem}-job.sh"
        job.write_text("\n".join(["#!/bin/bash", *plan.job.lines, f"{plan.job.run_prefix} true"]))
        paths += [path, job]
    assert len(paths) > 100
    for path in paths:
        done = subprocess.run(["bash", "-n", path], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), path.name
    if not shutil.which("shellcheck"):
        pytest.skip("shellcheck is not installed; bash -n found nothing")
    command = ["shellcheck", "--severity=warning", "--exclude=SC1090,SC1091", "--format=gcc"]
    done = subprocess.run([*command, *paths], capture_output=True, text=True, check=False)
    assert done.stdout == ""


def test_conda_never_gets_more_than_the_driver_supports() -> None:
    for cluster in CLUSTERS.values():
        for version, most in (("525.60.13", "12.0"), ("535.104.05", "12.2"), ("580.65.06", "13.0")):
            for kind in ("conda", "container"):
                asked = EnvironmentRequest(framework="pytorch", kind=kind, driver=version)
                try:
                    found = plan_environment(cluster, asked)
                except InputError:
                    continue
                assert isinstance(found, EnvironmentPlan)
                lines = [line for step in found.steps for line in step.lines]
                set_to = {word.partition("=")[2] for line in lines for word in line.split()
                          if word.startswith("CONDA_OVERRIDE_CUDA=")}  # fmt: skip
                assert set_to <= {most}


MISTAKES = [
    ({"kind": "conda"}, "puhti", "--kind conda: Puhti does not offer this kind"),
    ({"kind": "module", "framework": "cupy"}, "puhti", "--kind module: Puhti documents no module"),
    ({"framework": "cupy"}, "lumi", "LUMI documents no way to install CuPy"),
    ({"version": "9.9", "kind": "conda"}, "arc4", "Teho does not know PyTorch 9.9 for conda"),
    ({"version": "new"}, "arc4", "--version: 'new'"),
    ({"python": "3.x"}, "arc4", "--python: '3.x'"),
    ({"driver": "latest"}, "arc4", "--driver: 'latest'"),
    ({"name": "a b"}, "arc4", "--name: 'a b'"),
    ({"place": "envs"}, "arc4", "--place envs is a relative path"),
    ({"gpu_type": "h100"}, "arc4", "--gpu-type: ARC4 has no 'h100'"),
    ({"gpu_type": "mi300a"}, "nibi", "Nibi's wheels are for CUDA"),
]


@pytest.mark.parametrize("row", MISTAKES, ids=lambda row: row[2])
def test_what_cannot_be_planned_is_named(row: tuple[dict[str, str], str, str]) -> None:
    given, name, words = row
    with pytest.raises(InputError, match=words):
        plan_environment(CLUSTERS[name], EnvironmentRequest(**{"framework": "pytorch", **given}))


def test_nothing_fits_and_says_why(teho) -> None:
    done = teho("env", "plan", *shlex.split("--cluster roihu --framework tensorflow --kind venv"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("✗ No TensorFlow as venv fits.")
    assert "this version has no GPU build for aarch64" in done.stderr
    found = plan_environment(
        CLUSTERS["roihu"], EnvironmentRequest(framework="tensorflow", kind="venv")
    )
    assert isinstance(found, NothingFits)


def test_an_unknown_driver_and_module_version_are_cautions() -> None:
    found = plan_environment(CLUSTERS["aire"], EnvironmentRequest(framework="pytorch"))
    assert isinstance(found, EnvironmentPlan)
    assert found.driver is None
    assert any("does not document" in text and "--driver" in text for text in found.cautions)
    found = plan_environment(
        CLUSTERS["puhti"], EnvironmentRequest(framework="tensorflow", version="2.7")
    )
    assert isinstance(found, EnvironmentPlan)
    assert any("but not 2.7" in text for text in found.cautions)


def test_a_wish_that_a_sites_own_software_cannot_meet_is_reported() -> None:
    for cluster, version in (("lumi", "2.3"), ("puhti", "")):
        asked = EnvironmentRequest(framework="pytorch", version=version, python="3.9")
        found = plan_environment(CLUSTERS[cluster], asked)
        assert isinstance(found, EnvironmentPlan)
        told = [text for text in found.cautions if "has no effect" in text]
        assert [text.split()[0] for text in told] == ["--version"] * bool(version) + ["--python"]


def test_the_very_release_that_is_asked_for() -> None:
    for cluster, spec in (("aire", "pytorch=2.5.0.*=cuda*"), ("roihu", "torch==2.10.0.*")):
        kind = "conda" if cluster == "aire" else "venv"
        version = spec.split("=")[-2 if kind == "conda" else -1].removesuffix(".*")
        found = plan_environment(
            CLUSTERS[cluster], EnvironmentRequest(framework="pytorch", kind=kind, version=version)
        )
        assert isinstance(found, EnvironmentPlan)
        assert any(spec in line for step in found.steps for line in step.lines)


def test_the_urls_of_what_conda_installed(tmp_path: Path) -> None:
    (tmp_path / "conda-meta").mkdir()
    for name in ("b", "a"):
        (tmp_path / "conda-meta" / f"{name}.json").write_text(
            f'{{"url": "https://c/{name}.conda"}}'
        )
    program = f"import sys; sys.prefix = {str(tmp_path)!r}\n{steps._URLS}"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["https://c/a.conda", "https://c/b.conda"]


def test_a_cluster_that_says_nothing_of_environments() -> None:
    bare = msgspec.structs.replace(CLUSTERS["lumi"], environments=None, software=())
    found = plan_environment(bare, EnvironmentRequest(framework="pytorch"))
    assert isinstance(found, EnvironmentPlan)
    assert (found.kind, found.other_kinds) == ("venv", ("conda",))
    lines = [line for step in found.steps for line in step.lines]
    assert "uv pip install --torch-backend=rocm7.14 'torch==2.14.*'" in lines
    found = plan_environment(bare, EnvironmentRequest(framework="tensorflow"))
    assert isinstance(found, NothingFits)
    assert {one.why for one in found.refused} == {"this version has no build with ROCm"}


def test_the_page_shows_what_is_written() -> None:
    page = (Path(__file__).parents[2] / "docs" / "env.md").read_text()
    shown = page.partition("```bash\n")[2].partition("```")[0].splitlines()
    written = (DATA / "arc4-pytorch.sh").read_text().splitlines()
    assert [line for line in shown if line not in written] == ["…"]
