"""Lines that activate an environment in a job, from its plan, path or name."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from teho.errors import InputError
from teho.model.cluster import Cluster, Environments, Software
from teho.model.software import Activation, EnvironmentPlan
from teho.patterns import lazy_pattern
from teho.schedulers.script.quoting import bash_word
from teho.software.steps import conda_activation

__all__ = ["activation_of"]

_NAME = lazy_pattern(r"[A-Za-z0-9_][\w.-]*", re.ASCII)


def activation_of(text: str, cluster: Cluster) -> Software:
    """Return the lines that activate an environment on a cluster, as software of a job's script.

    Args:
        text: a file from `teho env plan --format json`; a container (`.sif`); the directory of a
            virtual, conda or tykky environment; or the name of a conda environment.
        cluster: the cluster of the job.

    Raises:
        InputError: the text is something else, or a plan for another cluster.
    """
    found = _activation(text, cluster)
    return Software(
        framework="any", lines=found.lines, run_prefix=found.run_prefix, source=f"--env {text}"
    )


def _activation(text: str, cluster: Cluster) -> Activation:
    environments = cluster.environments or Environments(kinds=(), source="")
    if text.endswith(".json"):
        return _of_plan(Path(text), cluster)
    if text.endswith(".sif"):
        runtime = environments.maker if environments.maker != "tykky" else ""
        gpus = {node.gpu.vendor for node in cluster.nodes if node.gpu}
        flag = "--rocm" if gpus == {"amd"} else "--nv"
        lines = environments.container if runtime else ()
        return Activation(
            lines=lines, run_prefix=f"{runtime or 'apptainer'} exec {flag} {bash_word(text)}"
        )
    if "/" in text:
        return _of_directory(Path(text), environments)
    if not _NAME.fullmatch(text):
        raise InputError(
            f"--env: {text!r}",
            "the name of an environment of conda, a directory, a .sif file, or a plan in JSON",
        )
    return Activation(lines=conda_activation(environments, text))


def _of_plan(path: Path, cluster: Cluster) -> Activation:
    try:
        plan = msgspec.json.decode(path.read_bytes(), type=EnvironmentPlan)
    except OSError as error:
        raise InputError(f"--env: {path}: {error.strerror}", "a file that you can read") from error
    except msgspec.MsgspecError as error:
        raise InputError(
            f"--env: {path}: {error}",
            "the JSON that `teho env plan --format json` writes",
        ) from error
    if plan.cluster != cluster.name:
        raise InputError(
            f"--env: {path} is for {plan.title}, but the job is for {cluster.title}",
            next_step=f"`teho env plan --cluster {cluster.name}`",
        )
    return plan.job


def _of_directory(path: Path, environments: Environments) -> Activation:
    """Return the lines for a directory; its files show the kind of environment."""
    whole = bash_word(str(path.absolute()))
    if (path / "bin" / "activate").is_file() and not (path / "conda-meta").is_dir():
        activate = f"source {bash_word(str(path.absolute() / 'bin' / 'activate'))}"
        return Activation(lines=(*environments.python, activate))
    if (path / "conda-meta").is_dir():
        return Activation(lines=conda_activation(environments, whole))
    if (path / "bin" / "python").exists():
        return Activation(lines=(f'export PATH={bash_word(str(path.absolute() / "bin"))}:"$PATH"',))
    raise InputError(
        f"--env: {path} has no bin/activate, no conda-meta and no bin/python",
        "the directory of an environment",
        "look at the directory's files with `ls`; if you mean an environment of conda, write its "
        "name without a slash",
    )
