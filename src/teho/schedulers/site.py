"""Find the site of this node in the part of the catalogue that every rank and recorder reads."""

from __future__ import annotations

from teho.errors import InputError
from teho.schedulers.sites import SITES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from teho.schedulers.site_types import Generation, Site

__all__ = ["find_generation", "find_site", "with_gpus"]


def find_site(environment: Mapping[str, str], host: str) -> Site | None:
    """Return the site of this node. None: unknown.

    The site is named by `TEHO_CLUSTER`, which Teho's job scripts set. Otherwise it is recognised by
    its variables, or else by the host name. A cluster that Teho's own catalogue does not have is
    passed as JSON in `TEHO_SITE`.

    Raises:
        InputError: `TEHO_SITE` cannot be read.
    """
    if text := environment.get("TEHO_SITE"):
        return _read(text)
    if name := environment.get("TEHO_CLUSTER"):
        return next((site for site in SITES if site["name"] == name), None)
    found = [site for site in SITES if _has_variables(site, environment)]
    found = found or [site for site in SITES if _has_host(site, host.lower())]
    return found[0] if len(found) == 1 else None


def _read(text: str) -> Site:
    import json

    pairs = {str: str}
    generation = {"name": str, "variables": pairs, "directories": [str]}
    shape = {
        "name": str,
        "recognised_by": pairs,
        "hosts": [str],
        "cores_of_gpu": [[int]],
        "reserved_cores": [int],
        "cores_with_gpu": int,
        "memory_with_gpu_mib": int,
        "gpus_visible": str,
        "scratch": str,
        "scratch_in_memory": bool,
        "generations": [generation],
    }
    try:
        site = json.loads(text)
    except (ValueError, RecursionError):
        site = None
    if not _fits(site, shape):
        raise InputError(
            f"TEHO_SITE cannot be read: {text[:60]!r}",
            "the JSON that Teho's job scripts set",
            "unset TEHO_SITE, or write the script again with `teho plan --script`",
        )
    found: Site = site
    return found


def _fits(value: object, shape: object) -> bool:
    """Return whether a value has a shape, given as types, lists and objects."""
    if isinstance(shape, list):
        return isinstance(value, list) and all(_fits(one, shape[0]) for one in value)
    if not isinstance(shape, dict):
        return type(value) is shape
    if not isinstance(value, dict):
        return False
    if str in shape:
        return all(type(one) is str for one in value.values())
    return value.keys() == shape.keys() and all(_fits(value[key], shape[key]) for key in shape)


def _has_variables(site: Site, environment: Mapping[str, str]) -> bool:
    wanted = site["recognised_by"]
    return bool(wanted) and all(environment.get(key) == value for key, value in wanted.items())


def _has_host(site: Site, host: str) -> bool:
    names = {host, host.partition(".")[0]}
    for pattern in map(str.lower, site["hosts"]):
        # `fnmatch` is loaded only if beginning and end match.
        begin = pattern.partition("*")[0].partition("?")[0].partition("[")[0]
        end = pattern.rpartition("*")[2].rpartition("?")[2].rpartition("]")[2]
        if any(name.startswith(begin) and name.endswith(end) for name in names):
            from fnmatch import fnmatchcase

            if any(fnmatchcase(name, pattern) for name in names):
                return True
    return False


def find_generation(site: Site | None, name: str) -> Generation | None:
    """Return a site's variables for a generation of containers; empty name: the current one.

    Raises:
        InputError: the site has no such generation.
    """
    known = site["generations"] if site else []
    if not name or name == "none":
        return known[0] if known and not name else None
    for generation in known:
        if generation["name"] == name:
            return generation
    names = ", ".join(generation["name"] for generation in known)
    where = f"{site['name']} has" if site else "Teho does not know this site, so it knows"
    has = f"only {names}" if known else "no generations of containers"
    raise InputError(
        f"--generation {name}: {where} {has}",
        "one of these, or `none`" if known else "`none`",
    )


def with_gpus(site: Site | None, gpus: int | None, slots: int | None) -> int | None:
    """Return the cores of a Grid Engine job on one node. None: unknown.

    If cores come with the GPUs, as on ARC4, the job has one slot and more cores.

    Args:
        site: of the node. None: unknown; the slots are the cores.
        gpus: of the job on this node. None: unknown.
        slots: of the job on this node. None: unknown.
    """
    if not (site and site["cores_with_gpu"] and gpus):
        return slots
    return max(slots or 0, site["cores_with_gpu"] * gpus)
