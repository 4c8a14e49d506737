"""The commands that make an environment, as text for bash: the templates of `steps.toml`, filled.

This module executes no command.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from teho.config.toml import read_toml, to_noun
from teho.model.cluster import Cluster, EnvironmentKind, Environments, Gpu, NodeKind, Software
from teho.model.software import Activation, Driver, Framework, Proposal, SetupStep
from teho.schedulers.script.quoting import bash_word
from teho.software.drivers import cuda_capability, cudnn_fits, numbers

if TYPE_CHECKING:
    import jinja2

__all__ = ["Case", "Commands", "EnvironmentRequest", "commands_for", "conda_activation"]

_HIDES = (
    "CONDA_OVERRIDE_CUDA makes conda act as if this machine had a GPU. The variable is set only "
    "for this command. In ~/.bashrc, the variable would hide that a node has no GPU."
)
_CONDA = {"pytorch": "pytorch", "tensorflow": "tensorflow", "jax": "jaxlib", "cupy": "cupy"}
_URLS = (
    "import json, pathlib, sys; "
    'records = pathlib.Path(sys.prefix, "conda-meta").glob("*.json"); '
    'print(*sorted(json.loads(one.read_text())["url"] for one in records), sep="\\n")'
)
"""Prints the address of each conda package. pip would name folders of the build machine."""
_OLD_CUDNN = "9.11"
"""First cuDNN that does not support GPUs before Turing; see `cuda.toml`."""


class EnvironmentRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the user wants."""

    framework: Framework
    version: str = ""
    python: str = ""
    extra: tuple[str, ...] = ()
    """Additional packages, as pip or conda name them."""
    kind: EnvironmentKind | None = None
    """None: as the site recommends."""
    name: str = ""
    """Name of the environment; empty: such as `pytorch-gpu`."""
    gpu_type: str = ""
    driver: str = ""
    """NVIDIA's version on the compute nodes, if the user knows it better."""
    place: str = ""
    """Directory for environments, used literally; empty: the site's."""
    tool: str = ""
    """The user's own `conda`, `mamba` or `micromamba`; empty: the site's conda."""


class Case(NamedTuple):
    """All that a plan depends on."""

    cluster: Cluster
    request: EnvironmentRequest
    node: NodeKind
    gpu: Gpu
    """The node's GPUs."""
    others: list[str]
    """Other types of GPU that the cluster has."""
    environments: Environments
    kind: EnvironmentKind
    software: Software | None
    """The site's own; None: the user makes the environment."""
    driver: Driver | None
    proposal: Proposal | None = None

    @property
    def name(self) -> str:
        """Name of the environment."""
        return self.request.name or f"{self.request.framework}-gpu"

    @property
    def capability(self) -> str:
        """NVIDIA's compute capability; empty: not known, or another vendor's GPU."""
        return cuda_capability(self.gpu.vendor, self.gpu.model)

    @property
    def cuda(self) -> str:
        """The CUDA that conda must assume: the driver's, or the lowest of the toolkit's major."""
        if self.driver is not None and self.driver.cuda:
            return self.driver.cuda
        return f"{self.toolkit_major}.0" if self.proposal else ""

    @property
    def toolkit_major(self) -> int:
        """Major version of the toolkit that was chosen; 0 if none was."""
        return numbers(self.proposal.toolkit)[0] if self.proposal else 0

    @property
    def release(self) -> str:
        """Release of the framework: as requested, or as proposed."""
        return self.request.version or (self.proposal.version if self.proposal else "")

    def path(self, suffix: str = "") -> str:
        """Return the environment's path plus a suffix such as `/bin` or `.sif`, as a bash word."""
        if self.request.place:
            return bash_word(f"{self.request.place.rstrip('/')}/{self.name}{suffix}")
        return f'"{self.environments.place}/{self.name}{suffix}"'  # may have the site's variables


class Commands(NamedTuple):
    """The commands for a login node, and those for each job."""

    steps: tuple[SetupStep, ...]
    job: Activation
    cautions: tuple[str, ...]


class _Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    comment: str
    lines: str


class _Way(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    steps: tuple[_Step, ...]
    installed: str
    checked: str = "{{ lock }}"
    job: str
    run_prefix: str = ""


class _Ways(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    module: _Way
    container: _Way
    conda: _Way
    venv: _Way
    wheelhouse: _Way
    wheelhouse_in_job: _Way
    tykky: _Way
    apptainer: _Way


def commands_for(case: Case) -> Commands:
    """Return the commands that make the environment of a case, and those that activate it."""
    way: _Way = getattr(_ways(), _way_of(case))
    values = _values(case)
    run_prefix = values["run_prefix"] = _filled(way.run_prefix, values)
    last = (
        _Step("List the installed packages, so that you can install them again.", way.installed),
        _Step(
            "Check whether the framework is a GPU build that works with the driver.",
            f"teho env check --cluster {case.cluster.name} {way.checked}",
        ),
    )
    steps = [
        SetupStep(comment=_filled(step.comment, values), lines=tuple(lines.split("\n")))
        for step in (*way.steps, *last)
        if (lines := _filled(step.lines, values))
    ]
    overrides = any("CONDA_OVERRIDE_CUDA" in line for step in steps for line in step.lines)
    job = _filled(way.job, values)
    return Commands(
        tuple(steps),
        Activation(lines=tuple(job.split("\n")) if job else (), run_prefix=run_prefix),
        (_HIDES,) if overrides else (),
    )


def _way_of(case: Case) -> str:
    site = case.environments
    if case.software is None and case.kind == "container":
        return "tykky" if site.maker == "tykky" else "apptainer"
    if case.kind == "venv" and site.wheelhouse:
        return "wheelhouse_in_job" if site.in_job else "wheelhouse"
    return case.kind


def _values(case: Case) -> dict[str, object]:
    """Return the values for the templates."""
    request, site = case.request, case.environments
    return {
        **{name: getattr(request, name) for name in ("framework", "version", "python", "tool")},
        **{name: getattr(case, name) for name in ("name", "gpu", "cuda", "release", "path")},
        "extra": list(request.extra),
        "lock": f"{case.name}.lock.txt",
        "site": site,
        "software": case.software,
        "module": _of_version(case.software.lines, request.version) if case.software else (),
        "site_python": _with_python(site.python, request.python),
        "proposal": case.proposal,
        "major": case.toolkit_major,
        "wheel": {"pytorch": "torch"}.get(request.framework, request.framework),
        "activation": conda_activation(site, case.name, request.tool),
        "specs": functools.partial(_specs, case),
        "old_cudnn": functools.partial(_old_cudnn, case),
        "urls_program": _URLS,
    }


def _filled(template: str, values: Mapping[str, object]) -> str:
    return _templates().from_string(template).render(values).strip("\n")


@functools.cache
def _templates() -> jinja2.Environment:
    import jinja2

    found = jinja2.Environment(  # noqa: S701 - a script, not HTML: values are quoted for bash
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    found.filters |= {"word": bash_word, "words": lambda words: " ".join(map(bash_word, words))}
    return found


@functools.cache
def _ways() -> _Ways:
    path = Path(__file__).with_name("steps.toml")
    return to_noun(read_toml(path), _Ways, path)


def conda_activation(environments: Environments, name: str, tool: str = "") -> tuple[str, ...]:
    """Return the lines with which a job activates a conda environment, in any shell.

    Args:
        environments: the site's.
        name: name or directory of the environment, as a bash word.
        tool: the user's own conda, mamba or micromamba; empty: the site's.
    """
    if not tool and environments.activate:
        return (*environments.conda, environments.activate.replace("{name}", name))
    lines = () if tool else environments.conda  # the site's would hide the user's own
    tool = tool or "conda"
    hook = "conda shell.bash hook" if tool == "conda" else f"{tool} shell hook --shell bash"
    return (*lines, f'eval "$({hook})"', f"{tool} activate {name}")


def _specs(case: Case) -> list[str]:
    """Return what conda is asked for: the release, and its GPU build by the build string."""
    assert case.proposal is not None  # noqa: S101 - conda's ways always have one
    framework = case.request.framework
    # CuPy has no CPU-only build.
    build = "" if framework == "cupy" else "=cuda*"
    specs = [
        f"python={case.proposal.python}",
        f"{_CONDA[framework]}={case.release}.*{build}",
        *(["jax"] if framework == "jax" else []),
    ]
    if numbers(case.cuda)[:1] > (case.toolkit_major,):
        specs.append(f"cuda-version={case.toolkit_major}")
    no_cudnn = framework == "cupy"
    return [*specs, *([] if no_cudnn else _old_cudnn(case, "cudnn")), *case.request.extra]


def _old_cudnn(case: Case, package: str) -> list[str]:
    """Return a limit for cuDNN if newer versions do not support the GPU; empty if they do."""
    if not case.capability or cudnn_fits(_OLD_CUDNN, case.capability):
        return []
    return [f"{package}<{_OLD_CUDNN}"]


def _of_version(lines: Sequence[str], version: str) -> tuple[str, ...]:
    """Return a module's lines; a version is appended to the name in the last line."""
    return (*lines[:-1], f"{lines[-1]}/{version}") if version else tuple(lines)


def _with_python(lines: Sequence[str], version: str) -> tuple[str, ...]:
    """Return lines that load a Python, with its version."""
    if not version:
        return tuple(lines)
    return tuple(re.sub(r"(?<=\s)python(/\S+)?(?=\s|$)", f"python/{version}", one) for one in lines)
