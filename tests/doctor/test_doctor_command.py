"""`teho doctor` from end to end: stub drivers old, new and hanging, and its exit codes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import jsonschema
import nvml_stub
import pytest
from small_pythons import fake_torch, small_python

from teho.doctor.checks import CHECKS

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "src" / "teho" / "show" / "doctor.schema.json").read_text())
JOB = {
    "SLURM_JOB_ID": "4711",
    "SLURM_JOB_GPUS": "0",
    "CUDA_VISIBLE_DEVICES": "0",
    "OMP_NUM_THREADS": "1",
    "TEHO_CLUSTER": "narval",
}
GPU_CHECKS = "gpus-allocated,cpu-only-build,driver-too-old,compute-capability,framework-sees-gpus"

Teho = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def stub(nvml_library: Path) -> Path:
    return nvml_library


def on(stub: Path, scenario: str, **more: str) -> dict[str, str]:
    return nvml_stub.environment(stub, nvml_stub.SCENARIOS / f"{scenario}.txt") | JOB | more


def gpu_python(folder: Path) -> Path:
    """Make a Python whose PyTorch is for CUDA 12.4 and sees one GPU."""
    python = small_python(folder, "torch-2.5.1+cu124")
    fake_torch(folder, gpus=1)
    return python


def checks_of(result: subprocess.CompletedProcess[str]) -> dict[str, dict]:
    assert result.stderr == ""
    told = json.loads(result.stdout)
    jsonschema.validate(told, SCHEMA)
    return {one["id"]: one for one in told["checks"]}


def test_a_sound_job(teho: Teho, stub: Path, tmp_path: Path) -> None:
    python = gpu_python(tmp_path / "env")
    env = on(stub, "h100x8_busy")
    words = ("--python", python, "--only", GPU_CHECKS)
    result = teho("doctor", *words, "--format", "json", env=env)
    states = {id_: one["state"] for id_, one in checks_of(result).items()}
    assert states == dict.fromkeys(GPU_CHECKS.split(","), "fine")
    assert result.returncode == 0
    page = teho("doctor", *words, env=env)
    assert page.returncode == 0
    assert page.stdout.startswith("✓ 5 checks passed.\n")
    assert all(len(line) <= 80 for line in page.stdout.splitlines())
    quiet = teho("doctor", "--in-job", *words, env=env)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")


def test_the_whole_page_judges_everything_once(teho: Teho, stub: Path, tmp_path: Path) -> None:
    python = gpu_python(tmp_path / "env")
    result = teho("doctor", "--python", python, "--format", "json", env=on(stub, "h100x8_busy"))
    assert list(checks_of(result)) == [check.id for check in CHECKS]
    page = teho("doctor", "--why", "--python", python, env=on(stub, "h100x8_busy"))
    assert all(page.stdout.count(check.id) >= 1 for check in CHECKS)
    assert page.returncode == result.returncode


def test_a_driver_that_is_too_old_dooms_the_job(teho: Teho, stub: Path, tmp_path: Path) -> None:
    python = gpu_python(tmp_path / "env")
    result = teho("doctor", "--in-job", "--python", python, "--only", GPU_CHECKS,
                  env=on(stub, "v100x4"))  # fmt: skip
    assert result.returncode == 3
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert lines[0].startswith("teho: this job will fail: The driver here is too old for pytorch: ")
    assert "CUDA 12.4 needs driver 525.60.13 or newer, but this driver is 450.80.02" in lines[0]
    # A V100 has compute capability 7.0, and this PyTorch begins at 8.0; one line each.
    assert [line.rpartition("[")[2] for line in lines] == ["driver-too-old]", "compute-capability]"]


def test_a_build_for_cpus_dooms_the_job(teho: Teho, stub: Path, torch_python: Path) -> None:
    result = teho("doctor", "--python", torch_python, "--only", "cpu-only-build",
                  env=on(stub, "h100x8_busy"))  # fmt: skip
    assert result.returncode == 1
    head = " ".join(result.stdout.split())
    assert head.startswith("✗ If you start a job here now, it will fail: ")
    assert re.search(r"torch 2[\w.+]* is a build for CPUs only", head)


def test_a_job_whose_gpus_are_not_there(teho: Teho, stub: Path, tmp_path: Path) -> None:
    python = small_python(tmp_path / "env")
    env = on(stub, "no_driver")
    result = teho("doctor", "--in-job", "--python", python, env=env)
    assert result.returncode == 3
    assert "The job was allocated 1 GPU on this node, but none can be used: " in result.stderr
    # Outside of a job the same node is one without GPUs.
    outside = {**env, "SLURM_JOB_ID": "", "SLURM_JOB_GPUS": ""}
    assert teho("doctor", "--in-job", "--python", python, env=outside).returncode == 0


def test_what_dooms_no_job_ends_none(teho: Teho, stub: Path, tmp_path: Path) -> None:
    python = gpu_python(tmp_path / "env")
    words = ("--python", python, "--only", "threads,openmp-hints")
    env = on(stub, "h100x8_busy", OMP_NUM_THREADS="900", GOMP_CPU_AFFINITY="0-3")
    quiet = teho("doctor", "--in-job", *words, env=env)
    assert quiet.returncode == 0
    assert [line.partition(": ")[2][:8] for line in quiet.stderr.splitlines()] == ["warning:"] * 2
    assert teho("doctor", *words, env=env).returncode == 1


def test_it_ends_however_the_driver_hangs(tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler to build a faulty driver with")
    source = tmp_path / "x.c"
    source.write_text(
        "#include <unistd.h>\nint nvmlInitWithFlags(unsigned f) { (void)f; for (;;) pause(); }"
    )
    library = tmp_path / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    python = small_python(tmp_path / "env", "torch-2.5.1+cu124")
    fake_torch(tmp_path / "env", gpus=1)
    program = (
        "import teho.doctor.collect as collect; collect._DRIVER_S = 1.0\n"
        "from teho.cli.group import run\n"
        f"run(['doctor', '--in-job', '--python', {str(python)!r}])"
    )
    began_s = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | JOB | {"LD_LIBRARY_PATH": str(tmp_path)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert time.monotonic() - began_s < 20
    assert done.returncode == 3
    assert "the NVIDIA driver did not answer within 1 s" in done.stderr


@pytest.mark.parametrize("where", ["collect.collect_snapshot", "examine.chosen"])
def test_our_own_mistake_ends_no_job(where: str) -> None:
    program = (
        "from teho.doctor import collect, examine\n"
        "def fail(*_, **__): raise ValueError('ours')\n"
        f"{where} = fail\n"
        "from teho.cli.group import run\n"
        "run(['doctor', '--in-job'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "teho: doctor could not check this job: ValueError('ours')\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--only", "gpu"), "--only gpu: there is no such check"),
        (("--in-job", "--self-test"), "--in-job cannot be used together with --self-test"),
        (("--cluster", "narvla"), "no cluster 'narvla' in the catalogue, did you mean 'narval'?"),
    ],
)
def test_mistakes(teho: Teho, words: tuple[str, ...], says: str) -> None:
    result = teho("doctor", *words)
    assert result.returncode == 2
    assert says in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("python", ["/no/such/python", "~nosuchuser/python"])
def test_a_python_that_is_not_there_is_a_mistake_and_ends_no_job(
    teho: Teho, stub: Path, python: str
) -> None:
    words = ("--python", python, "--only", "cpu-only-build")
    result = teho("doctor", *words, env=on(stub, "h100x8_busy"))
    assert result.returncode == 2
    assert result.stderr.startswith(f"teho: --python {python}: no such program")
    # In a job, this does not end it.
    assert teho("doctor", "--in-job", *words, env=on(stub, "h100x8_busy")).returncode == 0


def test_the_python_of_a_container_is_not_this_nodes(
    teho: Teho, stub: Path, torch_python: Path
) -> None:
    env = on(stub, "h100x8_busy", PATH=f"{torch_python.parent}:{os.environ['PATH']}")
    only = ("--only", GPU_CHECKS)
    assert teho("doctor", "--in-job", *only, env=env).returncode == 3  # it is for CPUs
    told = teho("doctor", "--in-job", *only, "--python", "-", env=env)
    assert (told.returncode, told.stderr) == (0, "")


def test_secrets_are_not_shown(teho: Teho, stub: Path, tmp_path: Path) -> None:
    secret = "s3cr3t-value"
    env = on(
        stub, "h100x8_busy", MY_TOKEN=secret, https_proxy=f"http://ada:{secret}@127.0.0.1:9",
        SLURM_JOB_ACCOUNT=secret,
    )  # fmt: skip
    python = gpu_python(tmp_path / "env")
    for form in ("text", "json"):
        result = teho("doctor", "--python", python, "--format", form, env=env)
        assert "127.0.0.1:9" in result.stdout
        assert secret not in result.stdout + result.stderr


def test_data_are_inspected(teho: Teho, tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.png").write_bytes(b"x" * 2048)
    result = teho("doctor", "--data", tmp_path, "--only", "small-files", "--format", "json")
    (one,) = checks_of(result).values()
    assert one["said"].startswith("3 files, with a median size of 2.00 KiB")
