"""Software that uses the GPU: installed builds, builds that fit, and how to install them."""

from __future__ import annotations

from typing import Literal, Union

import msgspec

from teho.model.cluster import EnvironmentKind

__all__ = [
    "CHECK_SCHEMA",
    "PLAN_SCHEMA",
    "Accelerator",
    "Activation",
    "Build",
    "Checked",
    "Driver",
    "EnvironmentPlan",
    "Framework",
    "Package",
    "Problem",
    "Proposal",
    "Refused",
    "SetupStep",
]

CHECK_SCHEMA = "teho.env-check/1"
"""Name and version of the JSON form of `Checked`."""
PLAN_SCHEMA = "teho.env-plan/1"
"""Name and version of the JSON form of `EnvironmentPlan`."""

Framework = Literal["pytorch", "tensorflow", "jax", "cupy"]
Accelerator = Literal["cuda", "rocm", "xpu", "cpu", "unknown"]
"""Target of a package; `xpu`: Intel's GPUs."""


class Package(msgspec.Struct, frozen=True, kw_only=True):
    """A package of a listing or an environment."""

    name: str
    """In lower case, with hyphens."""
    version: str
    """With its local part, such as `2.5.1+cu124`."""
    build: str = ""
    """conda's build string, such as `cuda120_py313h6ccb88c_302`."""
    origin: Literal["conda", "pip", ""] = ""
    """Program that installed it; empty if unknown."""


class Build(msgspec.Struct, frozen=True, kw_only=True):
    """Build of an installed framework."""

    kind: Accelerator
    toolkit: str = ""
    """Version of CUDA or ROCm, such as `12.6`, or `12` if only this is known; empty: unknown."""
    framework: Union[Framework, Literal[""]] = ""
    package: str = ""
    """Name of the package with this information."""
    version: str = ""
    evidence: str = ""
    """Evidence, such as `build cuda120_py313h6ccb88c_302`."""


class Driver(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU driver, as far as it is known."""

    version: str = ""
    """Version of NVIDIA's driver, such as `535.104.05`; empty: only its CUDA is known."""
    cuda: str = ""
    """Newest CUDA that it supports."""
    where: str = ""
    """Machine of the driver, such as `this node` or `Roihu's compute nodes`."""
    source: str = ""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A problem of an environment that keeps, or may keep, programs from the GPU."""

    kind: str
    """Stable name, such as `cpu_only_build`."""
    severity: Literal["critical", "warning"]
    sentence: str
    evidence: str
    action: str


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `teho env check` for one listing or environment."""

    schema: str = CHECK_SCHEMA
    source: str
    """The file, or the interpreter."""
    form: str
    """Form of the source, such as `conda list`."""
    python: str = ""
    builds: tuple[Build, ...]
    cuda: str = ""
    """Installed CUDA run time; empty: none was found."""
    cudnn: str = ""
    nccl: str = ""
    driver: Union[Driver, None] = None
    """Null if unknown: the builds were not compared with a driver."""
    gpu: str = ""
    """GPU for the comparison."""
    problems: tuple[Problem, ...]
    not_checked: tuple[str, ...] = ()
    """Skipped checks and the missing facts."""


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """A newer release or build, and why it is not proposed."""

    what: str
    """Release or build, such as `PyTorch 2.14 with CUDA 13.2`."""
    why: str
    source: str


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """The newest combination that fits."""

    version: str
    python: str
    """Version of Python; empty: the Python of the site."""
    accelerator: Literal["cuda", "rocm"]
    toolkit: str
    capabilities_known: bool
    """Whether the documentation says that the build has code for the GPU."""
    source: str
    refused: tuple[Refused, ...] = ()
    """Newer releases and builds, newest first."""


class SetupStep(msgspec.Struct, frozen=True, kw_only=True):
    """Commands that belong together."""

    comment: str
    lines: tuple[str, ...]


class Activation(msgspec.Struct, frozen=True, kw_only=True):
    """Lines that make an environment available in a job."""

    lines: tuple[str, ...] = ()
    run_prefix: str = ""
    """Prefix of the program's command, such as a container's exec."""


class EnvironmentPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Plan to install a GPU build of a framework on one cluster."""

    schema: str = PLAN_SCHEMA
    cluster: str
    title: str
    framework: Framework
    kind: EnvironmentKind
    name: str
    gpu: str
    """GPU, such as `Tesla V100 (compute capability 7.0)`."""
    driver: Union[Driver, None] = None
    proposal: Union[Proposal, None] = None
    """Null if the site's build is used: a module, a container, a wheelhouse."""
    steps: tuple[SetupStep, ...]
    """Steps to run once, on a login node."""
    job: Activation
    """Lines for every job."""
    cautions: tuple[str, ...] = ()
    other_kinds: tuple[EnvironmentKind, ...] = ()
    """Other kinds that the cluster offers."""
    source: str
