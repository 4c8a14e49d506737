"""A random site as the text of Grid Engine's files. Pure."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "twins"))

from grid_engine_shape import replaced
from grid_engine_sites import Host, ParallelEnvironment, Queue, Site

__all__ = [
    "access_list",
    "complexes",
    "environment",
    "host",
    "host_group",
    "lines_of",
    "meminfo",
    "project",
    "queue",
    "quota_set",
]


def complexes(shown: str, site: Site) -> str:
    """Return Grid Engine's table of resources with the site's own rows."""
    rows = dict(_rows_of(site))
    kept = [row for row in shown.splitlines() if row.split(maxsplit=1)[0] not in rows]
    return "\n".join([*kept, *(f"{name} {rest}" for name, rest in rows.items())]) + "\n"


def _rows_of(site: Site) -> Iterator[tuple[str, str]]:
    yield from site.complexes.items()
    for one in site.gpus:
        yield one.complex, f"{one.complex} INT <= {one.requestable} {one.consumable} 0 0"


def host(shown: str, site: Site, one: Host) -> str:
    """Return a host's file, from the one that Grid Engine shows."""
    gpus = {
        gpu.complex: str(one.gpus[gpu.complex])
        for gpu in site.gpus
        if gpu.complex in one.gpus and gpu.level == "host"
    }
    rows = {"complex_values": _pairs({**one.values, **gpus}), **one.words}
    lines = replaced(shown, rows).splitlines()
    # Two rows only Grid Engine may write.
    kept = [line for line in lines if line.split()[0] not in {"load_values", "processors"}]
    return "\n".join(kept) + "\n"


def host_group(name: str, site: Site) -> str:
    return f"group_name {name}\nhostlist {' '.join(site.groups[name])}\n"


def environment(shown: str, one: ParallelEnvironment) -> str:
    rows = {"pe_name": one.name, "allocation_rule": one.rule, "slots": str(one.slots), **one.words}
    return replaced(shown, rows)


def queue(shown: str, one: Queue) -> str:
    """Return a queue's file, from the template that Grid Engine shows."""
    rows = {
        "qname": one.name,
        "hostlist": " ".join(one.hosts),
        "slots": one.slots,
        "pe_list": one.environments,
        "complex_values": _pairs(one.values),
        "load_thresholds": "NONE",
        **one.words,
    }
    return replaced(shown, rows)


def quota_set(name: str, site: Site, *, enabled: bool = True) -> str:
    rules = "".join(f"  {rule}\n" for rule in site.quotas[name])
    return f"{{\n  name {name}\n  enabled {str(enabled).upper()}\n{rules}}}\n"


def access_list(name: str, site: Site) -> str:
    return f"name {name}\ntype ACL\nfshare 0\noticket 0\nentries {site.lists[name]}\n"


def project(name: str, site: Site) -> str:
    words = next(one.words for one in site.projects if one.name == name)
    acl, xacl = words.get("acl", "NONE"), words.get("xacl", "NONE")
    return f"name {name}\noticket 0\nfshare 0\nacl {acl}\nxacl {xacl}\n"


def meminfo(one: Host) -> str:
    """Return what the host's `/proc/meminfo` says."""
    total = one.memory_mib * 1024
    free = total - 900_000
    rows = {"MemTotal": total, "MemFree": free, "MemAvailable": free, "Buffers": 0, "Cached": 0}
    rows |= {"SwapTotal": 0, "SwapFree": 0}
    return "".join(f"{name}: {kib} kB\n" for name, kib in rows.items())


def lines_of(site: Site) -> str:
    """Return what makes a site what it is, to be read in a report."""
    lines = [f"# site {site.seed} {_pairs(site.words, ' ')}".replace(" NONE", "")]
    lines += [f"complex {name} {rest}" for name, rest in _rows_of(site)]
    for one in site.hosts:
        gpus = {
            gpu.complex: str(one.gpus[gpu.complex])
            for gpu in site.gpus
            if gpu.complex in one.gpus and gpu.level == "host"
        }
        values = _pairs({**one.values, **gpus})
        lines.append(
            f"host {one.name}: {one.sockets}x{one.cores} cores, {one.memory_mib} MiB, "
            f"complex_values {values} {_pairs(one.words, ' ')}".replace(" NONE", "")
        )
    lines += [f"group {name}: {' '.join(hosts)}" for name, hosts in site.groups.items()]
    for pe in site.environments:
        words = _pairs(pe.words, " ").replace("NONE", "")
        lines.append(f"pe {pe.name}: {pe.rule}, slots {pe.slots} {words}")
    for own in site.queues:
        state = {"d": " (disabled)", "s": " (suspended)"}.get(own.state, "")
        values = f" complex_values {_pairs(own.values)}" if own.values else ""
        words = " ".join(f"{key} {value}" for key, value in own.words.items())
        lines.append(
            f"queue {own.name}{state}: hostlist {' '.join(own.hosts)} slots {own.slots} "
            f"pe_list {own.environments}{values} {words}"
        )
    lines += [f"quota {name}: {'; '.join(rules)}" for name, rules in site.quotas.items()]
    used = {name: entries for name, entries in site.lists.items() if _used(name, site)}
    lines += [f"list {name}: {entries}" for name, entries in used.items()]
    lines += [f"project {one.name} {_pairs(one.words, ' ')}" for one in site.projects]
    return "\n".join(line.rstrip() for line in lines)


def _used(name: str, site: Site) -> bool:
    words = [one.words for one in site.queues] + [one.words for one in site.environments]
    words += [one.words for one in site.projects] + [one.words for one in site.hosts]
    return any(name in values.values() for values in words) or f"@{name}" in str(site.quotas)


def _pairs(values: Mapping[str, str], between: str = ",") -> str:
    return between.join(f"{name}={value}" for name, value in values.items()) or "NONE"
