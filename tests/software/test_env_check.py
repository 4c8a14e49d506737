"""`teho env check`, of files, of real environments, and against a real driver's library."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import nvml_stub
import pytest

from teho.clusters.catalogue import load_cluster
from teho.model.software import Checked, Driver, EnvironmentPlan, Package
from teho.show.json.noun import schema_of
from teho.software.check import Target, check

DATA = Path(__file__).parents[1] / "data" / "software"
OLD = Driver(version="470.57.02", cuda="11.4", where="this node")
NEW = Driver(version="580.65.06", cuda="13.0", where="this node")
V100 = {"vendor": "nvidia", "gpu": "Tesla V100", "capability": "7.0"}
H100 = {"vendor": "nvidia", "gpu": "H100", "capability": "9.0"}


def pip(*specs: str) -> list[Package]:
    pairs = (spec.split("==") for spec in specs)
    return [Package(name=name, version=version, origin="pip") for name, version in pairs]


def kinds(packages: list[Package], **target: object) -> list[str]:
    found = check(packages, source="x", form="pip freeze", target=Target(**target))
    return [problem.kind for problem in found.problems]


TORCH = pip("torch==2.14.0+cu126", "nvidia-cuda-runtime-cu12==12.6.77")
TORCH_13 = pip("torch==2.14.0", "nvidia-cuda-runtime==13.0.96")
JAX = pip("jaxlib==0.10.2", "jax-cuda12-plugin==0.10.2")
TF = pip("tensorflow==2.21.0")

CASES = [
    ("cpu_only_build", pip("torch==2.14.0+cpu"), TORCH, H100),
    ("cpu_only_build", pip("jaxlib==0.10.2"), JAX, H100),
    ("driver_too_old", TORCH, TORCH, {"driver": OLD}),
    ("gpu_not_supported", TORCH_13, TORCH, V100),
    ("wrong_vendor", TORCH, pip("torch==2.14.0+rocm7.2"), {"vendor": "amd", "gpu": "MI250X"}),
    ("wrong_vendor", pip("torch==2.14.0+rocm7.2"), TORCH, H100),
    ("wrong_vendor", pip("torch==2.14.0+xpu"), TORCH, H100),
    ("cudnn_not_for_gpu", [*JAX, *pip("nvidia-cudnn-cu12==9.12.0")],
     [*JAX, *pip("nvidia-cudnn-cu12==9.10.2")], V100),
    ("plugin_mismatch", pip("jaxlib==0.10.2", "jax-cuda12-plugin==0.9.2"), JAX, H100),
    ("installed_twice", [*TORCH, Package(name="pytorch", version="2.13.0", origin="conda",
                                         build="cuda129_mkl_py313_h1_301")], TORCH, H100),
    ("installed_twice", pip("cupy-cuda12x==14.1", "cupy-cuda13x==14.1"),
     pip("cupy-cuda12x==14.1"), H100),
    ("no_cuda_libraries", TF, [*TF, *pip("nvidia-cuda-runtime-cu12==12.5.82")], H100),
    ("no_framework", pip("numpy==2.0"), TORCH, H100),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: CASES[number][0])
def test_each_problem_is_found_and_its_opposite_is_not(number: int) -> None:
    kind, bad, good, target = CASES[number]
    assert kind in kinds(bad, **target)
    better = {"driver": NEW} if kind == "driver_too_old" else target
    assert kinds(good, **better) == []


@pytest.mark.parametrize(
    ("driver", "too_old"),
    [("525.60.13", False), ("525.60.12", True), ("535.104.05", False), ("450.80.02", True)],
)
def test_on_both_sides_of_the_driver(driver: str, *, too_old: bool) -> None:
    found = kinds(TORCH, driver=Driver(version=driver, where="here"))
    assert ("driver_too_old" in found) is too_old


def test_what_is_not_known_is_reported_and_never_called_fine() -> None:
    found = check(TORCH, source="x", form="pip freeze", target=Target())
    assert found.problems == ()
    assert [line.partition(":")[0] for line in found.not_checked] == ["Driver", "GPU"]
    found = check(pip("torch==2.9.0+computecanada"), source="x", form="x", target=Target(**H100))
    assert "does not say for which CUDA or ROCm version" in found.not_checked[0]


@pytest.mark.parametrize(
    ("lines", "claimed", "gap"),
    [
        ("torch==2.14.0+cu126\n", True, ""),
        ("torch==1.7.1+cu92\n", False, "the lowest version for CUDA 9.2 is not known"),
        ("tensorflow-gpu==2.10.0\n", False, "the build's CUDA is not known"),
    ],
)
def test_a_driver_that_could_not_be_judged_is_not_called_fine(
    lines: str, gap: str, teho, *, claimed: bool
) -> None:
    done = teho("env", "check", "-", "--driver", "580.65.06", stdin=lines)
    assert done.returncode == 0
    assert ("and the driver runs it" in done.stdout) is claimed
    assert gap in " ".join(done.stdout.split())
    assert ("? Driver: " in done.stdout) is bool(gap)


def test_pips_tensorflow_is_advised_only_if_it_has_gpu_builds() -> None:
    assert kinds(TF, **H100) == ["no_cuda_libraries"]
    assert kinds(TF, **H100, arch="aarch64") == []
    assert kinds(TF, vendor="amd", gpu="MI250X") == []


def test_other_gpus_of_the_cluster_are_named(teho) -> None:
    freeze = "torch==2.12.0+cu130\n"
    done = teho("env", "check", "-", "--cluster", "graham", stdin=freeze)
    said = "? GPU: the check is for P100 12 GB. graham also has a100, a5000, t4, v100:"
    assert said in done.stdout
    done = teho("env", "check", "-", "--cluster", "graham", "--gpu-type", "v100", stdin=freeze)
    assert done.returncode == 1
    assert "also has" not in done.stdout


def test_a_cpu_build_next_to_a_gpu_build_is_a_warning() -> None:
    both = check([*TORCH, *pip("jaxlib==0.10.2")], source="x", form="x", target=Target(**H100))
    assert [(one.kind, one.severity) for one in both.problems] == [("cpu_only_build", "warning")]


def test_the_advice_fits_the_kind_of_environment() -> None:
    conda = [Package(name="pytorch", version="2.8.0", build="cpu_mkl_py313_h1_101", origin="conda")]
    for target, words in (
        (Target(), "`CONDA_OVERRIDE_CUDA=VERSION conda install 'pytorch=*=cuda*'`"),
        (Target(cluster="aire"), "`teho env plan --cluster aire --framework pytorch`"),
    ):
        (problem,) = check(conda, source="x", form="conda list", target=target).problems
        assert words in problem.action


def test_the_arc4_documents_listing(teho) -> None:
    path = DATA / "arc4-conda-create.txt"
    done = teho("env", "check", path, "--cluster", "arc4")
    assert done.returncode == 0
    assert done.stdout.startswith("✓ PyTorch: for the GPU, and the driver runs it.")
    spoilt = path.read_text().replace("cuda120_py313h6ccb88c_302", "cpu_mkl_py313hbc6f0e9_102")
    done = teho("env", "check", "-", "--cluster", "arc4", stdin=spoilt)
    assert done.returncode == 1
    assert "✗ PyTorch is a CPU-only build: it cannot use a GPU." in done.stdout
    assert "`teho env plan --cluster arc4 --framework pytorch`" in done.stdout
    assert "Driver for CUDA 12.0 (ARC4's compute nodes)" in " ".join(done.stdout.split())


def test_json_is_as_its_schemas_say(teho) -> None:
    for path in sorted(DATA.glob("*.*")):
        done = teho("env", "check", path, "--cluster", "roihu", "--format", "json")
        jsonschema.validate(json.loads(done.stdout), schema_of(Checked))
    for cluster in ("arc4", "lumi", "narval", "puhti", "roihu"):
        done = teho("env", "plan", "--cluster", cluster, "--framework", "pytorch",
                    "--format", "json")  # fmt: skip
        jsonschema.validate(json.loads(done.stdout), schema_of(EnvironmentPlan))


def test_the_framework_is_a_word_or_an_option(teho) -> None:
    as_word = teho("env", "plan", "pytorch", "--cluster", "arc4")
    as_option = teho("env", "plan", "--cluster", "arc4", "--framework", "pytorch")
    assert as_word.returncode == as_option.returncode == 0
    assert as_word.stdout == as_option.stdout
    assert "torch" in as_word.stdout
    wrong = teho("env", "plan", "pytorhc", "--cluster", "arc4")
    assert wrong.returncode == 2
    assert "pytorch" in wrong.stderr


@pytest.fixture
def venv(tmp_path: Path) -> Callable[..., Path]:
    """Make a real virtual environment, with metadata as an installer leaves it."""

    def make(
        *specs: str, torch_cuda: str = "", torch_xpu: str = "None", conda: tuple[str, ...] = ()
    ) -> Path:
        folder = tmp_path / "an env"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        (packages,) = folder.glob("lib/python*/site-packages")
        for spec in specs:
            name, version = spec.split("==")
            info = packages / f"{name.replace('-', '_')}-{version}.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(
                f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
            )
            (info / "RECORD").touch()
        if torch_cuda:
            (packages / "torch").mkdir()
            (packages / "torch" / "version.py").write_text(
                "from typing import Optional\n__version__ = '2.9.0'\n"
                f"cuda: Optional[str] = {torch_cuda}\nhip: Optional[str] = None\n"
                f"xpu: Optional[str] = {torch_xpu}\n"
            )
            (packages / "torch" / "__init__.py").write_text("raise SystemExit('imported')\n")
        for name in conda:
            (folder / "conda-meta").mkdir(exist_ok=True)
            (folder / "conda-meta" / f"{name}.json").write_text("{}")
        return folder / "bin" / "python"

    return make


def test_a_real_environment_by_its_interpreter(venv, teho) -> None:
    python = venv("torch==2.14.0+cu126", "nvidia-cuda-runtime-cu12==12.6.77")
    done = teho("env", "check", "--python", python, "--cluster", "roihu", "--format", "json")
    found = json.loads(done.stdout)
    assert done.returncode == 0
    assert found["python"] == sys.version.split()[0]
    assert [(one["kind"], one["toolkit"]) for one in found["builds"]] == [("cuda", "12.6")]


@pytest.mark.parametrize(
    ("says", "intel", "kind"),
    [("'12.6'", "None", "cuda"), ("None", "None", "cpu"), ("None", "'20250302'", "xpu")],
)
def test_torchs_own_file_is_read_and_torch_is_not_imported(
    says: str, intel: str, kind: str, venv, teho
) -> None:
    python = venv("torch==2.9.0+computecanada", torch_cuda=says, torch_xpu=intel)
    done = teho("env", "check", "--python", python, "--cluster", "narval", "--format", "json")
    (build,) = json.loads(done.stdout)["builds"]
    assert build["kind"] == kind
    assert done.returncode == (kind != "cuda")


def test_condas_own_records_count_for_its_packages(venv, teho) -> None:
    python = venv(
        "torch==2.8.0", "numpy==2.3.2",
        conda=("pytorch-2.8.0-cuda129_mkl_py313_h1e53aa0_301", "cuda-version-12.9-h4f385c5_3",
               "numpy-2.3.2-py313hf6604e3_0"),
    )  # fmt: skip
    done = teho("env", "check", "--python", python, "--cluster", "roihu", "--format", "json")
    found = json.loads(done.stdout)
    assert [one["package"] for one in found["builds"]] == ["pytorch"]
    assert found["cuda"] == "12.9"


def test_real_pytorch(torch_python: Path, teho) -> None:
    done = teho("env", "check", "--python", torch_python, "--cluster", "roihu", "--format", "json")
    said = subprocess.run(
        [torch_python, "-c", "import torch; print(torch.version.cuda)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    kind = {one["framework"]: one["kind"] for one in json.loads(done.stdout)["builds"]}["pytorch"]
    assert (kind == "cpu") is (said.stdout.strip() == "None")


@pytest.mark.parametrize(("scenario", "too_old"), [("v100x4", True), ("h200x4", False)])
def test_against_this_nodes_driver(
    scenario: str, nvml_library: Path, tmp_path: Path, teho, *, too_old: bool
) -> None:
    (tmp_path / "freeze.txt").write_text("torch==2.14.0+cu126\n")
    environment = nvml_stub.environment(nvml_library, nvml_stub.SCENARIOS / f"{scenario}.txt")
    done = teho("env", "check", tmp_path / "freeze.txt", "--format", "json", env=environment)
    found = json.loads(done.stdout)
    assert found["driver"]["where"] == "this node"
    assert [one["kind"] for one in found["problems"]] == ["driver_too_old"] * too_old
    assert done.returncode == too_old


def test_without_a_driver_nothing_is_claimed_of_it(
    nvml_library: Path, tmp_path: Path, teho
) -> None:
    (tmp_path / "freeze.txt").write_text("torch==2.14.0+cu126\n")
    environment = nvml_stub.environment(nvml_library, nvml_stub.SCENARIOS / "no_driver.txt")
    done = teho("env", "check", tmp_path / "freeze.txt", env=environment)
    assert done.returncode == 0
    assert "? Driver: the version on the compute nodes is not known" in done.stdout
    assert "the driver runs it" not in done.stdout


def test_on_a_login_node_it_is_the_clusters_nodes_that_count(
    nvml_library: Path, tmp_path: Path, teho
) -> None:
    (tmp_path / "freeze.txt").write_text("torch==2.9.0+rocm6.4\n")
    environment = nvml_stub.environment(nvml_library, nvml_stub.SCENARIOS / "no_driver.txt")
    narval = load_cluster("narval", {}).recognised_by
    for around, kinds in (({}, []), (narval, ["wrong_vendor"])):
        words = ("env", "check", tmp_path / "freeze.txt", "--format", "json")
        done = teho(*words, env={**environment, **around})
        assert [one["kind"] for one in json.loads(done.stdout)["problems"]] == kinds


def test_what_cannot_be_read_is_named(tmp_path: Path, teho) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho hello\n")
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    for arguments, words in (
        ((tmp_path / "none.txt",), "No such file"),
        ((tmp_path,), "Is a directory"),
        (("--python", tmp_path / "none"), "expected a Python of 3.8 or later"),
        (("--python", broken), "does not list what is installed"),
        ((broken, "--python", broken), "FILE cannot be used together with --python"),
        ((broken, "--gpu-type", "a100"), "--gpu-type without --cluster"),
        ((broken, "--cluster", "arc5"), "did you mean 'arc4'?"),
    ):
        done = teho("env", "check", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert words in done.stderr
        assert "Traceback" not in done.stderr
