"""Find all mistakes of a cluster's file at once, for its author."""

from __future__ import annotations

from pathlib import Path

from teho.clusters.catalogue import read_cluster
from teho.config.toml import mistakes, read_toml
from teho.errors import InputError
from teho.model.cluster import Cluster

__all__ = ["mistakes_in"]


def mistakes_in(path: Path) -> list[str]:
    """Return a line for each mistake of a file, with its place in the file; empty: no mistake.

    Contradictions are only searched if all keys and values are valid.
    """
    try:
        found = list(mistakes(read_toml(path), Cluster))
        if not found:
            read_cluster(path)
    except InputError as error:
        found = [str(error).removeprefix(f"{path}: ")]
    return [f"{path}: {sentence}" for sentence in found]
