"""A GPU build is told from a CPU build by what a package says, or by what stands beside it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from teho.model.software import Package
from teho.software.builds import build_of, builds_of, runtime_of

DATA = Path(__file__).parents[1] / "data" / "software"
ARC4 = DATA / "arc4-conda-create.txt"
GPU_LINE = "pytorch            conda-forge/linux-64::pytorch-2.4.1-cuda120_py313h6ccb88c_302"
CPU_LINE = "pytorch            conda-forge/linux-64::pytorch-2.4.1-cpu_mkl_py313hbc6f0e9_102"


def test_the_two_lines_of_the_arc4_document_are_distinguished() -> None:
    assert GPU_LINE in ARC4.read_text()
    kinds = []
    for line in (GPU_LINE, CPU_LINE):
        name, version, build = line.rpartition("::")[2].rsplit("-", 2)
        kinds.append((build_of(name, version, build).kind, build_of(name, version, build).toolkit))
    assert kinds == [("cuda", "12.0"), ("cpu", "")]


BUILDS = [
    # name, version, build string -> kind, toolkit, framework
    ("pytorch", "2.13.0", "cuda129_mkl_py313_h1e53aa0_301", "cuda", "12.9", "pytorch"),
    ("pytorch", "2.13.0", "cuda130_generic_py312_h1e53aa0_200", "cuda", "13.0", "pytorch"),
    ("pytorch", "2.13.0", "cpu_generic_py312_h1e53aa0_2", "cpu", "", "pytorch"),
    ("pytorch", "2.1.0", "py3.11_cuda12.1_cudnn8.9.2_0", "cuda", "12.1", "pytorch"),
    ("pytorch", "2.1.0", "py3.11_cpu_0", "cpu", "", "pytorch"),
    ("pytorch", "1.10.0", "cuda112py39h3ad47f5_1", "cuda", "11.2", "pytorch"),
    ("torch", "2.5.1+cu124", "", "cuda", "12.4", "pytorch"),
    ("torch", "2.13.0+cu130", "", "cuda", "13.0", "pytorch"),
    ("torch", "1.7.1+cu92", "", "cuda", "9.2", "pytorch"),
    ("torch", "2.5.1+rocm6.2", "", "rocm", "6.2", "pytorch"),
    ("torch", "2.6.0+rocm6.2.4", "", "rocm", "6.2.4", "pytorch"),
    ("torch", "2.9.1+xpu", "", "xpu", "", "pytorch"),
    ("torch", "2.5.1+cpu", "", "cpu", "", "pytorch"),
    ("torch", "2.5.1+cpu.cxx11.abi", "", "cpu", "", "pytorch"),
    ("torch", "2.9.0+computecanada", "", "unknown", "", "pytorch"),
    ("torch", "2.9.0", "", "unknown", "", "pytorch"),
    ("tensorflow", "2.19.1", "cuda128py313h29f7f93_250", "cuda", "12.8", "tensorflow"),
    ("tensorflow", "2.19.1", "cpu_py313h69fc1be_3", "cpu", "", "tensorflow"),
    ("tensorflow", "2.10.0", "mkl_py39h25e0d4a_0", "cpu", "", "tensorflow"),
    ("tensorflow", "2.10.0", "eigen_py39h25e0d4a_0", "cpu", "", "tensorflow"),
    ("tensorflow", "2.10.0", "gpu_py39h039f4ff_0", "cuda", "", "tensorflow"),
    ("tensorflow_cpu", "2.19.1", "", "cpu", "", "tensorflow"),
    ("tensorflow-gpu", "2.10.0", "", "cuda", "", "tensorflow"),
    ("tensorflow-rocm", "2.14.0", "", "rocm", "", "tensorflow"),
    ("jaxlib", "0.9.2", "cuda129_py313h2a5dcca_200", "cuda", "12.9", "jax"),
    ("jaxlib", "0.9.2", "cpu_py313hf39d2e1_0", "cpu", "", "jax"),
    ("jaxlib", "0.4.20+cuda12.cudnn89", "", "cuda", "12", "jax"),
    ("cupy-cuda12x", "13.6.0", "", "cuda", "12", "cupy"),
    ("cupy_cuda13x", "14.1.1", "", "cuda", "13", "cupy"),
    ("cupy-cuda112", "10.6.0", "", "cuda", "11.2", "cupy"),
    ("cupy-rocm-5-0", "12.0.0", "", "rocm", "5.0", "cupy"),
    ("cupy", "14.1.1", "py312h1acd1a8_0", "unknown", "", "cupy"),
    ("numpy", "2.3.2", "py313hf6604e3_0", "unknown", "", ""),
    ("torchvision", "0.23.0+cu126", "", "cuda", "12.6", ""),
]


@pytest.mark.parametrize("row", BUILDS, ids=lambda row: f"{row[0]}-{row[1]}-{row[2]}")
def test_a_build_shows_what_it_is_for(row: tuple[str, ...]) -> None:
    name, version, build, *expected = row
    told = build_of(name, version, build)
    assert [told.kind, told.toolkit, told.framework] == expected
    assert bool(told.evidence) is (told.kind != "unknown")


def test_the_local_version_may_be_separate() -> None:
    assert build_of("torch", "2.5.1", "", "cu124") == build_of("torch", "2.5.1+cu124")


def pip(*specs: str) -> list[Package]:
    pairs = (spec.split("==") for spec in specs)
    return [Package(name=name, version=version, origin="pip") for name, version in pairs]


def kinds(*specs: str, **facts: str) -> list[tuple[str, str]]:
    return [(one.kind, one.toolkit) for one in builds_of(pip(*specs), facts)]


def test_jax_is_for_the_gpu_if_a_plugin_is_installed() -> None:
    assert kinds("jaxlib==0.10.2") == [("cpu", "")]
    assert kinds("jaxlib==0.10.2", "jax-cuda12-plugin==0.10.2") == [("cuda", "12")]
    assert kinds("jaxlib==0.10.2", "jax-rocm7-plugin==0.10.2") == [("rocm", "7")]
    assert kinds("jaxlib==0.10.2+computecanada") == [("cpu", "")]
    assert kinds("jaxlib==0.4.23+computecanada") == [("unknown", "")]  # before plugins


def test_a_wheel_without_a_local_version_is_for_the_installed_cuda() -> None:
    assert kinds("torch==2.9.1") == [("unknown", "")]
    assert kinds("torch==2.9.1", "nvidia-cuda-runtime-cu12==12.8.90") == [("cuda", "12.8")]
    assert kinds("torch==2.11.0", "nvidia-cuda-runtime==13.0.96") == [("cuda", "13.0")]


def test_installed_cuda_does_not_make_a_wheel_of_another_maker_cuda() -> None:
    assert kinds("torch==2.9.0+computecanada", "cuda-cudart==12.9.79") == [("unknown", "")]


def test_a_frameworks_own_files_count_for_more_than_names() -> None:
    assert kinds("torch==2.9.0+computecanada", torch="cuda 12.6") == [("cuda", "12.6")]
    assert kinds("torch==2.9.1", "nvidia-cuda-runtime==13.0.96", torch="cpu") == [("cpu", "")]


def test_condas_own_word_for_a_cpu_build() -> None:
    assert kinds("pytorch==1.13.1", "cpuonly==2.0") == [("cpu", "")]


def test_a_metapackage_is_not_a_second_framework() -> None:
    packages = pip("pytorch==2.8.0", "pytorch-gpu==2.8.0", "cupy==14.1.1", "cupy-core==14.1.1")
    assert [one.package for one in builds_of(packages)] == ["pytorch", "cupy"]
    assert [one.package for one in builds_of(pip("cupy-core==14.1.1"))] == ["cupy-core"]
    both = [
        Package(name=name, version="2.8.0", build="cpu_mkl_py313_h1_101", origin="conda")
        for name in ("pytorch", "pytorch-cpu")
    ]
    assert [one.package for one in builds_of(both)] == ["pytorch"]
    twice = pip("tensorflow==2.21.0", "tensorflow-cpu==2.21.0")  # pip's bring a TensorFlow each
    assert len(builds_of(twice)) == 2


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("cuda-version==12.9", "12.9"),
        ("cudatoolkit==11.8.0", "11.8"),
        ("nvidia-cuda-runtime-cu12==12.6.77", "12.6"),
        ("numpy==2.0", ""),
    ],
)
def test_cudas_run_time(spec: str, expected: str) -> None:
    assert runtime_of(pip(spec)) == expected


def test_the_arc4_documents_text_says_what_the_tests_say() -> None:
    assert re.search(r"cuda-version\s+\S+::cuda-version-12\.6-", ARC4.read_text())
