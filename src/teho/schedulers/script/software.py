"""Choose the software that a script loads: the site's framework, in the requested version."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from teho.config.toml import did_you_mean
from teho.errors import InputError
from teho.launchers.registry import launcher_of
from teho.model.cluster import Cluster, Software
from teho.model.plan import Option
from teho.patterns import lazy_pattern
from teho.schedulers.script.options import ScriptOptions

__all__ = ["PYTHON", "chosen_software", "software_remark"]

PYTHON = lazy_pattern(r"python[\d.]*", re.ASCII)
"""A command that starts Python, without its path."""
_FRAMEWORKS = frozenset({"pytorch", "tensorflow", "jax"})
_WITH_VERSION = lazy_pattern(r"(?P<name>[^=/]*)(?:==|/)(?P<version>.+)")


def chosen_software(option: Option, cluster: Cluster, options: ScriptOptions) -> Software | None:
    """Return the software to load. None: the script loads nothing.

    It is the user's environment, the requested framework, or the framework that the command needs:
    a launcher of PyTorch, or a program `python` without a path, needs PyTorch. If the cluster has
    no entry for a framework, its entry for any framework is used. A launcher that needs Horovod
    gets a version that contains it.

    Raises:
        InputError: the cluster does not have the framework, the version, or Horovod.
    """
    if options.software is not None or options.framework == "none":
        return options.software
    known = {software.framework: software for software in cluster.software}
    name, version = _requested(options.framework)
    launcher = launcher_of(option.request.launcher)
    if launcher.needs_horovod and known:
        return _with_horovod(cluster, known, name, version)
    if name:
        return _in_version(cluster, _entry(cluster, known, name), version)
    framework = launcher.framework
    if not framework and PYTHON.fullmatch(option.request.command[0]):
        framework = "pytorch"
    return (known.get(framework) or known.get("any")) if framework else None


def software_remark(option: Option, cluster: Cluster, options: ScriptOptions) -> str:
    """Return what the user must know about the software that is loaded; empty: nothing."""
    if options.software is not None or options.framework == "none":
        return ""
    name, version = _requested(options.framework)
    known = {software.framework: software for software in cluster.software}
    if not name and launcher_of(option.request.launcher).needs_horovod:
        having = [software for software in cluster.software if software.horovod]
        others = [f"`--framework {one.framework}=={one.horovod[0]}`" for one in having[1:]]
        return f"another module has Horovod too: {', '.join(others)}" if others else ""
    if name in _FRAMEWORKS and name not in known and known:
        return (
            f"{cluster.title} does not document software for {name}, so the script loads only "
            "the general software of the cluster. To activate your environment with "
            f"{name}, use `--env ENV`"
        )
    entry = known.get(name)
    if entry and version in entry.old_versions:
        return f"{name} {version} on {cluster.title}: {entry.notes}"
    if entry and version and entry.kind == "venv":
        return (
            f"if the job cannot install {name} {version}: `avail_wheels` lists the available "
            "versions"
        )
    return ""


def _requested(framework: str) -> tuple[str, str]:
    """Return the framework and its version, both empty if not requested."""
    match = _WITH_VERSION.fullmatch(framework)
    return (match["name"], match["version"]) if match else (framework, "")


def _entry(cluster: Cluster, known: Mapping[str, Software], name: str) -> Software:
    if name in known:
        return known[name]
    if name in _FRAMEWORKS and "any" in known:
        return known["any"]
    names = {*known, "none", *(_FRAMEWORKS if "any" in known else ())}
    near = did_you_mean(name, names)
    raise InputError(f"--framework: {cluster.title} has no {name!r}{near}")


def _in_version(cluster: Cluster, entry: Software, version: str) -> Software:
    """Return the entry with lines that load this version; empty: the site's default."""
    if not version:
        return entry
    named = f"--framework: {entry.framework} {version} on {cluster.title}"
    versions = (*entry.versions, *entry.old_versions)
    if entry.kind == "venv":
        end = f"=={version}"
        lines = tuple(
            line + end if line.startswith("pip install ") else line for line in entry.lines
        )
    elif version in versions:
        old = entry.old_lines if version in entry.old_versions else ()
        *before, load = entry.lines
        lines = (*before, *old, f"{load}/{version}")
    elif versions:
        raise InputError(named, f"one of {', '.join(versions)}")
    else:
        raise InputError(
            named,
            "no version, because the cluster documents none",
            "use `--env` for your own environment",
        )
    return msgspec.structs.replace(entry, lines=lines)


def _with_horovod(
    cluster: Cluster, known: Mapping[str, Software], name: str, version: str
) -> Software:
    entries = [_entry(cluster, known, name)] if name else list(known.values())
    having = [entry for entry in entries if entry.horovod]
    if not having:
        raise InputError(
            f"--launcher horovod: {cluster.title} documents no {name or 'module'} with Horovod",
            next_step="use your own environment with `--env`, another launcher such as "
            "`--launcher torchrun`, or `--framework none` if the job has Horovod",
        )
    entry = having[0]
    if version and version not in entry.horovod:
        raise InputError(
            f"--launcher horovod: {cluster.title} documents no {entry.framework} {version} with "
            "Horovod",
            f"a version with Horovod: {', '.join(entry.horovod)}",
        )
    return _in_version(cluster, entry, version or entry.horovod[0])
