"""Recognises GPU and CPU builds, from a package's name and version and from other packages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from teho.model.software import Build, Framework, Package
from teho.patterns import lazy_pattern
from teho.software.drivers import numbers

__all__ = ["build_of", "builds_of", "cudnn_of", "nccl_of", "runtime_of"]

_FRAMEWORKS: dict[str, Framework] = {
    "torch": "pytorch", "pytorch": "pytorch", "pytorch-cpu": "pytorch", "pytorch-gpu": "pytorch",
    "tensorflow": "tensorflow", "tensorflow-cpu": "tensorflow", "tensorflow-gpu": "tensorflow",
    "tensorflow-rocm": "tensorflow", "tensorflow-intel": "tensorflow",
    "tensorflow-cpu-aws": "tensorflow", "tf-nightly": "tensorflow", "tf-nightly-cpu": "tensorflow",
    "jaxlib": "jax", "cupy": "cupy", "cupy-core": "cupy",
}  # fmt: skip
"""Name of a package in pip or conda -> the framework that it is, or is the compiled part of."""
_CPU_NAMES = lazy_pattern(r"(tensorflow|tf-nightly|pytorch)-(cpu|intel)(-aws)?")
_CUPY = lazy_pattern(r"cupy-(cuda|rocm)-?(\d[\dx-]*)")
_PLUGIN = lazy_pattern(r"jax-(cuda|rocm)(\d+)-(?:plugin|pjrt)")
# cuda120_py313, py3.11_cuda12.1_cudnn8, gpu_cuda118, cu126, cuda12.cudnn89
_CUDA = lazy_pattern(r"(?:^|[_.+-])cu(?:da)?_?(\d+(?:\.\d+)?)")
_ROCM = lazy_pattern(r"(?:^|[_.+-])(?:rocm|hip)_?(\d+(?:\.\d+)*)")
_XPU = lazy_pattern(r"(?:^|[_.+-])xpu(?:$|[_.+-])")
_CPU = lazy_pattern(r"(?:^|[_.+-])(?:cpu|mkl|eigen|openblas)(?:$|[_.+-])")
_GPU = lazy_pattern(r"(?:^|[_.+-])gpu(?:$|[_.+-])")
# From CUDA 13 on, the names of NVIDIA's wheels have no CUDA version.
_RUNTIME = lazy_pattern(r"nvidia-cuda-runtime(-cu\d+)?|cuda-version|cuda-cudart|cudatoolkit")
_CUDNN = lazy_pattern(r"nvidia-cudnn-cu\d+|cudnn|libcudnn")
_NCCL = lazy_pattern(r"nvidia-nccl-cu\d+|nccl")


def build_of(name: str, version: str, build: str = "", local: str = "") -> Build:
    """Return what a package was built for, from its name, version and build string.

    Args:
        name: the package's name in pip or conda.
        version: with or without its local part.
        build: conda's build string, such as `cpu_mkl_py313hbc6f0e9_102`.
        local: the local part of the version if it is not in `version`, such as `cu126`.

    Returns:
        Kind `unknown` if they do not show it. `builds_of` also reads the other packages.
    """
    plain = name.lower().replace("_", "-")
    version, _, own = version.partition("+")
    local = local or own
    whole = f"{version}+{local}" if local else version
    unknown = Build(
        kind="unknown",
        framework=_framework_of(plain),
        package=plain,
        version=whole,
    )
    if _CPU_NAMES.fullmatch(plain):
        return _known(unknown, "cpu", "", f"package {plain}")
    if found := _CUPY.fullmatch(plain):
        kind, digits = found.groups()
        dotted = digits.replace("-", ".") if kind == "rocm" else _dotted(digits.rstrip("x-"))
        return _known(unknown, kind, dotted, f"package {plain}")
    if plain == "tensorflow-rocm":
        return _known(unknown, "rocm", "", f"package {plain}")
    for text, evidence in ((build, f"build {build}"), (local, f"version {whole}")):
        if found := _ROCM.search(text):
            return _known(unknown, "rocm", found.group(1), evidence)
        if found := _CUDA.search(text):
            return _known(unknown, "cuda", _dotted(found.group(1)), evidence)
        if _XPU.search(text):
            return _known(unknown, "xpu", "", evidence)
        if _CPU.search(text):
            return _known(unknown, "cpu", "", evidence)
        if _GPU.search(text):
            return _known(unknown, "cuda", "", evidence)
    if plain in {"tensorflow-gpu", "pytorch-gpu"}:
        return _known(unknown, "cuda", "", f"package {plain}")
    return unknown


def builds_of(packages: Iterable[Package], facts: Mapping[str, str] | None = None) -> list[Build]:
    """Return what each framework among packages was built for.

    Args:
        packages: all packages of an environment, because others may show it.
        facts: kind and toolkit (`cuda 12.6`, `cpu`) by name of the package, such as `torch`, from
            files of the installed packages; see `what_is_installed.py`.
    """
    everything = list(packages)
    found = []
    for package in everything:
        if not _framework_of(package.name):
            continue
        build = build_of(package.name, package.version, package.build)
        in_files = (facts or {}).get(package.name, "")
        if in_files:
            kind, _, toolkit = in_files.partition(" ")
            build = _known(build, kind, toolkit, f"the package's own files: {in_files}")
        elif build.kind == "unknown" or build.framework == "jax":
            build = _from_others(build, package, everything)
        # conda's `pytorch-cpu` only requires `pytorch`. pip's `tensorflow-cpu` is the framework.
        meta = "gpu|core|cpu" if package.origin == "conda" else "gpu|core"
        whole = re.sub(f"-({meta})$", "", package.name)
        if whole == package.name or not _has(everything, whole):
            found.append(build)
    return found


def runtime_of(packages: Sequence[Package]) -> str:
    """Return the installed version of CUDA's run time; empty if not installed."""
    named = [one for one in packages if _RUNTIME.fullmatch(one.name)]
    # The metapackage has the version of the toolkit. The version of cudart begins with the same.
    named.sort(key=lambda one: one.name != "cuda-version")
    return ".".join(map(str, numbers(named[0].version)[:2])) if named else ""


def cudnn_of(packages: Iterable[Package]) -> str:
    """Return the installed version of cuDNN; empty if not installed."""
    return _version(packages, _CUDNN)


def nccl_of(packages: Iterable[Package]) -> str:
    """Return the installed version of NCCL; empty if not installed."""
    return _version(packages, _NCCL)


def _from_others(build: Build, package: Package, everything: Sequence[Package]) -> Build:
    """Return the kind from other packages: JAX's plugins, NVIDIA's libraries, `cpuonly`."""
    if build.framework == "jax":
        for one in everything:
            if found := _PLUGIN.fullmatch(one.name):
                kind, toolkit = found.groups()
                return _known(build, kind, toolkit, f"{one.name} {one.version}")
        # Before plugins (JAX's CHANGELOG, 0.4.30), the version of official builds shows it.
        before = numbers(package.version) < (0, 4, 30) and "+" in package.version
        if build.kind != "unknown" or before:
            return build
        return _known(build, "cpu", "", "the list of packages: no plugin such as jax-cuda12-plugin")
    if _has(everything, "cpuonly"):
        return _known(build, "cpu", "", "package cpuonly")
    toolkit = runtime_of(everything)
    if toolkit and "+" not in package.version:
        # A wheel without a local version is the default build, which is for CUDA.
        return _known(build, "cuda", toolkit, f"the installed libraries of CUDA {toolkit}")
    return build


def _framework_of(name: str) -> Framework | Literal[""]:
    """Return a package's framework; empty if the package is not a framework or a part of one."""
    return "cupy" if _CUPY.fullmatch(name) else _FRAMEWORKS.get(name, "")


def _known(build: Build, kind: str, toolkit: str, evidence: str) -> Build:
    return msgspec.structs.replace(build, kind=kind, toolkit=toolkit, evidence=evidence)


def _dotted(digits: str) -> str:
    """Return `120` as `12.0` and `92` as `9.2`; `12`, or a version with a dot, unchanged."""
    if "." in digits or len(digits) < 2 or digits in {"10", "11", "12", "13"}:
        return digits
    major = 1 if len(digits) == 2 else 2
    return f"{digits[:major]}.{digits[major:]}"


def _has(packages: Iterable[Package], name: str) -> bool:
    return any(one.name == name for one in packages)


def _version(packages: Iterable[Package], name: re.Pattern[str]) -> str:
    return next((one.version for one in packages if name.fullmatch(one.name)), "")
