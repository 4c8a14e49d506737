"""The types of what `teho launch` knows of a site. Only type checkers load this file."""

from __future__ import annotations

from typing import TypedDict

__all__ = ["Generation", "Site"]


class Generation(TypedDict):
    """A set of variables that a site's containers need."""

    name: str
    variables: dict[str, str]
    directories: list[str]


class Site(TypedDict):
    """One cluster; what it does not document is empty."""

    name: str
    recognised_by: dict[str, str]
    hosts: list[str]
    cores_of_gpu: list[list[int]]
    reserved_cores: list[int]
    gpus_visible: str
    scratch: str
    """Variable (with its `$`) or path of a node's own disk."""
    scratch_in_memory: bool
    generations: list[Generation]
