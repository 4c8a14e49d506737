"""Software that uses the GPU: what is installed, what fits, and how to come by it."""

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
"""What a package was built for; `xpu`: Intel's GPUs."""


class Package(msgspec.Struct, frozen=True, kw_only=True):
    """A package as a listing or an environment names it."""

    name: str
    """In lower case, with hyphens."""
    version: str
    """With its local part, such as `2.5.1+cu124`."""
    build: str = ""
    """conda's build string, such as `cuda120_py313h6ccb88c_302`."""
    origin: Literal["conda", "pip", ""] = ""
    """Who installed it; empty if the listing does not report."""


class Build(msgspec.Struct, frozen=True, kw_only=True):
    """What an installed framework was built for."""

    kind: Accelerator
    toolkit: str = ""
    """CUDA or ROCm, such as `12.6`, or `12` where only that is known; empty: not told."""
    framework: Union[Framework, Literal[""]] = ""
    package: str = ""
    """Name of the package that tells."""
    version: str = ""
    evidence: str = ""
    """What says so, such as `build cuda120_py313h6ccb88c_302`."""


class Driver(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU driver, as far as it is known."""

    version: str = ""
    """NVIDIA's, such as `535.104.05`; empty: only its CUDA is known."""
    cuda: str = ""
    """Newest CUDA that it supports."""
    where: str = ""
    """Whose it is, such as `this node` or `Roihu's compute nodes`."""
    source: str = ""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Something about an environment that keeps programs from the GPU, or may."""

    kind: str
    """Stable name, such as `cpu_only_build`."""
    severity: Literal["critical", "warning"]
    sentence: str
    evidence: str
    action: str


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What `teho env check` found in one listing or environment."""

    schema: str = CHECK_SCHEMA
    source: str
    """The file, or the interpreter."""
    form: str
    """What was read, such as `conda list`."""
    python: str = ""
    builds: tuple[Build, ...]
    cuda: str = ""
    """CUDA's run time that is installed; empty: none was found."""
    cudnn: str = ""
    nccl: str = ""
    driver: Union[Driver, None] = None
    """Null where it is not known: the builds were not compared with any."""
    gpu: str = ""
    """The GPU that they were compared with."""
    problems: tuple[Problem, ...]
    not_checked: tuple[str, ...] = ()
    """What could not be told, and what for lack of."""


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """A newer release, or build of the same release, and why it is not proposed."""

    what: str
    """Such as `PyTorch 2.14 with CUDA 13.2`."""
    why: str
    source: str


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """The newest combination that fits."""

    version: str
    python: str
    """Empty: whatever the site's Python is."""
    accelerator: Literal["cuda", "rocm"]
    toolkit: str
    capabilities_known: bool
    """Whether it is documented that the build has code for the GPU."""
    source: str
    refused: tuple[Refused, ...] = ()
    """What is newer, newest first."""


class SetupStep(msgspec.Struct, frozen=True, kw_only=True):
    """Commands that belong together."""

    comment: str
    lines: tuple[str, ...]


class Activation(msgspec.Struct, frozen=True, kw_only=True):
    """What makes an environment available in a job."""

    lines: tuple[str, ...] = ()
    run_prefix: str = ""
    """What stands before the program's own command, such as a container's exec."""


class EnvironmentPlan(msgspec.Struct, frozen=True, kw_only=True):
    """From nothing to a GPU build of a framework on one cluster."""

    schema: str = PLAN_SCHEMA
    cluster: str
    title: str
    framework: Framework
    kind: EnvironmentKind
    name: str
    gpu: str
    """Such as `Tesla V100 (compute capability 7.0)`."""
    driver: Union[Driver, None] = None
    proposal: Union[Proposal, None] = None
    """Null where the site's own build is taken: a module, a container, a wheelhouse."""
    steps: tuple[SetupStep, ...]
    """Once, on a login node."""
    job: Activation
    """In every job."""
    cautions: tuple[str, ...] = ()
    other_kinds: tuple[EnvironmentKind, ...] = ()
    """What the cluster offers beside it."""
    source: str
