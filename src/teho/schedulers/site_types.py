"""Types of the generated tables in `sites.py`. Only type checkers load this file."""

from __future__ import annotations

from typing import TypedDict

__all__ = ["Generation", "NodeLauncher", "Site"]


class Generation(TypedDict):
    """A set of variables that a site's containers need."""

    name: str
    variables: dict[str, str]
    directories: list[str]


class Site(TypedDict):
    """One cluster. An undocumented entry is empty."""

    name: str
    recognised_by: dict[str, str]
    hosts: list[str]
    cores_of_gpu: list[list[int]]
    reserved_cores: list[int]
    cores_with_gpu: int
    """Cores that come with each GPU on Grid Engine, where `NSLOTS` does not count them. 0: none, or
    a different number for each type of GPU."""
    memory_with_gpu_mib: int
    """The same for memory, in MiB."""
    gpus_visible: str
    scratch: str
    """Variable (with its `$`) or path of the node's disk."""
    scratch_in_memory: bool
    generations: list[Generation]


class NodeLauncher(TypedDict):
    """A launcher that starts the processes of a node; see `teho.launchers.launcher.Launcher`."""

    name: str
    programs: tuple[str, ...]
    processes_option: str
    processes_variable: str
    counts_all_nodes: bool
