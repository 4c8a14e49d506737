"""Find the cluster of the catalogue that this machine belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from teho.model.cluster import Cluster

__all__ = ["current_cluster"]


def current_cluster(
    environment: Mapping[str, str], host: str, clusters: Iterable[Cluster]
) -> Cluster | None:
    """Return the cluster that this machine belongs to; None: not known.

    Environment variables count more than host names, which may be as common as `login1`. If
    several clusters fit, the result is None.

    Args:
        environment: variables, compared with `recognised_by`. All values must be equal.
        host: name of this machine, with or without its domain, compared with `hosts`.
        clusters: the possible clusters.
    """
    known = tuple(clusters)
    by_variables = [one for one in known if _has_variables(one, environment)]
    found = by_variables or [one for one in known if _has_host(one, host.lower())]
    return found[0] if len(found) == 1 else None


def _has_variables(cluster: Cluster, environment: Mapping[str, str]) -> bool:
    wanted = cluster.recognised_by
    return bool(wanted) and all(environment.get(key) == value for key, value in wanted.items())


def _has_host(cluster: Cluster, host: str) -> bool:
    names = {host, host.partition(".")[0]}
    return any(fnmatchcase(name, pattern.lower()) for name in names for pattern in cluster.hosts)
