"""Random Grid Engine sites: hosts, queues, parallel environments, resources, quotas. Pure.

A site is drawn from a seed, always the same one. It is written in the words of Grid Engine's own
files, so that a site is made smaller by taking words out.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec

__all__ = [
    "GROUP",
    "USER",
    "Gpus",
    "Host",
    "ParallelEnvironment",
    "Project",
    "Queue",
    "Site",
    "draw_site",
]

USER = "nobody"
"""Who plans and submits, as in the twin of ARC4: an ordinary user."""
GROUP = "nogroup"
"""The user's primary group."""

_TYPES = ("v100", "a100", "p100", "h100", "k80", "rtx8000", "l40s")
_PE_NAMES = {
    "$pe_slots": ("smp", "openmp", "shm.pe", "threaded", "omp-node", "sharedmem"),
    "$fill_up": ("orte", "mpi_fill", "ib-edr"),
    "$round_robin": ("mpi", "mpi-rr", "scatter"),
    "2": ("ib2", "pair"),
    "4": ("fixed4", "mpi-4ppn"),
    "8": ("node8",),
}
_QUEUE_NAMES = ("all.q", "gpu.q", "long.q", "short", "himem-1", "test.q", "batch")
_H_RT = ("INFINITY", "48:00:00", "00:30:00", "604800", "12:00:00", "240:00:00")


class Gpus(msgspec.Struct, frozen=True, kw_only=True):
    """A consumable that counts GPUs."""

    complex: str
    """Its name."""
    type: str = ""
    """Empty: the name says no type."""
    consumable: str = "YES"
    """`YES` for each slot, `JOB` for the whole job."""
    requestable: str = "YES"
    """`YES` or `FORCED`."""
    level: str = "host"
    """Where it is: `host` or `queue`."""


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """An execution host."""

    name: str
    sockets: int
    cores: int
    """Of each socket."""
    memory_mib: int
    """What it has and reports."""
    gpus: dict[str, int] = {}
    """Number of GPUs by consumable."""
    values: dict[str, str] = {}
    """Other `complex_values`, such as `slots`."""
    words: dict[str, str] = {}
    """More rows of its file, such as `user_lists`."""

    @property
    def all_cores(self) -> int:
        return self.sockets * self.cores


class ParallelEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """A parallel environment."""

    name: str
    rule: str
    slots: int = 999
    words: dict[str, str] = {}


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster queue. Values may have overrides, such as `16,[@gpu=8]`."""

    name: str
    hosts: tuple[str, ...]
    """Of its `hostlist`: names of hosts and host groups."""
    slots: str
    environments: str = "NONE"
    """Its `pe_list`."""
    values: dict[str, str] = {}
    """Its `complex_values` on all hosts."""
    words: dict[str, str] = {}
    """More rows of its file, such as `h_rt`."""
    state: str = ""
    """`d`: disabled; `s`: suspended."""


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """A project."""

    name: str
    words: dict[str, str] = {}


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """A site."""

    seed: str
    hosts: tuple[Host, ...]
    groups: dict[str, tuple[str, ...]]
    """Hosts by host group."""
    gpus: tuple[Gpus, ...] = ()
    complexes: dict[str, str] = {}
    """Rows of the table of resources, without the name, that differ from the usual ones."""
    environments: tuple[ParallelEnvironment, ...] = ()
    queues: tuple[Queue, ...]
    quotas: dict[str, tuple[str, ...]] = {}
    """Rules of the resource quota sets, such as `limit users {*} to slots=8`."""
    lists: dict[str, str] = {}
    """Entries of the access lists."""
    projects: tuple[Project, ...] = ()
    words: dict[str, str] = {}
    """Rows of the global configuration, such as `enforce_project`."""

    @property
    def memory(self) -> str:
        """The resource by which jobs ask for memory."""
        return memory_in(self.complexes)

    def queue(self, name: str) -> Queue:
        return next(queue for queue in self.queues if queue.name == name)

    def hosts_of(self, queue: Queue) -> list[Host]:
        """Return the hosts of a queue's instances."""
        names = {one for name in queue.hosts for one in self.groups.get(name, (name,))}
        return [host for host in self.hosts if host.name in names]

    def on_host(self, value: str, host: Host) -> str:
        """Return a queue's value on a host: the default, or the most special override."""
        default, _, rest = value.partition(",[")
        found = default
        for name, own in (part.rstrip("]").split("=", 1) for part in rest.split(",[") if part):
            if name == host.name:
                return own
            if host.name in self.groups.get(name, ()):
                found = own
        return found

    def gpus_on(self, host: Host, queue: Queue) -> dict[str, int]:
        """Return the GPUs that an instance of a queue offers, by consumable."""
        own = {one.complex: one for one in self.gpus}
        found = {
            name: count
            for name, count in host.gpus.items()
            if own[name].level == "host" or name in queue.values
        }
        return {
            name: min(count, int(queue.values.get(name, count))) for name, count in found.items()
        }


def memory_in(complexes: dict[str, str]) -> str:
    """Return the name of the resource for memory; `h_vmem` if a site counts none."""
    return next((name for name, row in complexes.items() if " MEMORY " in row), "h_vmem")


class _Draw(random.Random):
    """Draws for one site."""

    strictness = 1.0
    """What all chances of a limit are multiplied by: in a site full of limits few jobs fit."""

    def sometimes(self, chance: float) -> bool:
        return self.random() < chance * self.strictness


def draw_site(seed: str | int) -> Site:
    """Return the site of a seed."""
    draw = _Draw(f"grid engine site {seed}")
    draw.strictness = draw.choice((0.0, 0.3, 0.5, 0.8))
    gpus = _gpus(draw)
    complexes = _complexes(draw)
    hosts = _hosts(draw, gpus, complexes)
    groups = _groups(draw, hosts)
    environments = _environments(draw)
    lists, projects, words = _rights(draw)
    queues = _queues(draw, hosts, groups, gpus, environments, lists, projects)
    site = Site(
        seed=str(seed), hosts=hosts, groups=groups, gpus=gpus, complexes=complexes,
        environments=environments, queues=queues, lists=lists, projects=projects, words=words,
    )  # fmt: skip
    return msgspec.structs.replace(site, quotas=_quotas(draw, site))


def _gpus(draw: _Draw) -> tuple[Gpus, ...]:
    style = draw.choices(("none", "plain", "typed"), (1, 4, 5))[0]
    if style == "none":
        return ()
    how = {
        "consumable": draw.choice(("YES", "JOB")),
        "requestable": "FORCED" if draw.sometimes(0.3) else "YES",
        "level": draw.choice(("host", "host", "host", "queue")),
    }
    if style == "plain":
        name = draw.choice(("gpu", "ngpus", "gpus", "GPU", "cuda"))
        return (Gpus(complex=name, **how),)
    pattern = draw.choice(("coproc_{}", "cuda.{}", "{}", "gpu_{}", "nvidia-{}"))
    types = draw.sample(_TYPES, draw.choice((1, 1, 2, 2, 3)))
    # A job cannot ask for GPUs of every type.
    how["requestable"] = how["requestable"] if len(types) == 1 else "YES"
    return tuple(Gpus(complex=pattern.format(one), type=one, **how) for one in types)


def _complexes(draw: _Draw) -> dict[str, str]:
    default = draw.choice(("0", "1G", "1G", "2G", "512M", "4000M"))
    requestable = "FORCED" if draw.sometimes(0.4) else "YES"
    consumable = draw.choice(("YES", "YES", "JOB", "NO"))
    rows = {}
    name = draw.choices(("h_vmem", "mem_free", "rmem", "mem"), (8, 1, 1, 1))[0]
    if consumable != "NO":
        if requestable == "FORCED":
            default = "0"
        short = {"mem_free": "mf"}.get(name, name)
        rows[name] = f"{short} MEMORY <= {requestable} {consumable} {default} 0"
    if draw.sometimes(0.3):
        rows["h_rt"] = "h_rt TIME <= FORCED NO 0:0:0 0"
    return rows


def _hosts(draw: _Draw, gpus: Sequence[Gpus], complexes: dict[str, str]) -> tuple[Host, ...]:
    stem, end = draw.choice((("node", ""), ("c1-n", ".hpc.site"), ("gpu", "-ib"), ("d", "s.local")))
    counts = (1, 2, 4, 4, 8)
    found = []
    for number in range(draw.choice((1, 1, 2, 2))):
        sockets, cores = draw.choice(((1, 8), (1, 16), (2, 12), (2, 20), (2, 32), (1, 64)))
        memory_mib = draw.choice((31900, 64000, 95000, 191845, 257500, 385000, 515000))
        own = draw.sample(gpus, draw.randint(0 if number else 1, len(gpus))) if gpus else []
        values = {}
        if draw.random() < 0.7:
            cores_all = sockets * cores
            values["slots"] = str(draw.choice((cores_all, cores_all, cores_all - 1, 2 * cores_all)))
        memory = memory_in(complexes)
        if memory in complexes and draw.random() < 0.9:
            values[memory] = draw.choice(
                (f"{memory_mib}M", f"{memory_mib - 2345}M", f"{memory_mib / 1024 - 3:.1f}G",
                 f"{memory_mib // 1024}G")
            )  # fmt: skip
        found.append(
            Host(
                name=f"{stem}{number + 1:0{draw.choice((1, 2))}d}{end}",
                sockets=sockets,
                cores=cores,
                memory_mib=memory_mib,
                gpus={one.complex: draw.choice(counts) for one in own},
                values=values,
            )
        )
    return tuple(found)


def _groups(draw: _Draw, hosts: Sequence[Host]) -> dict[str, tuple[str, ...]]:
    groups = {"@allhosts": tuple(host.name for host in hosts)}
    with_gpus = tuple(host.name for host in hosts if host.gpus)
    if with_gpus and draw.random() < 0.6:
        groups[draw.choice(("@gpu", "@gpunodes", "@acc-1"))] = with_gpus
    if len(hosts) > 1 and draw.random() < 0.4:
        groups["@rack2"] = (hosts[1].name,)
    return groups


def _environments(draw: _Draw) -> tuple[ParallelEnvironment, ...]:
    rules = ["$pe_slots"] if draw.random() < 0.9 else []
    rules += draw.sample(tuple(_PE_NAMES), draw.choice((0, 1, 1, 2, 3)))
    found: dict[str, ParallelEnvironment] = {}
    for rule in rules:
        name = draw.choice(_PE_NAMES[rule])
        slots = draw.choice((4, 8, 12)) if draw.sometimes(0.25) else draw.choice((999, 9999))
        words = {}
        if draw.sometimes(0.08):
            words["user_lists"] = "others"
        found[name] = ParallelEnvironment(name=name, rule=rule, slots=slots, words=words)
    return tuple(found.values())


def _rights(draw: _Draw) -> tuple[dict[str, str], tuple[Project, ...], dict[str, str]]:
    lists = {"others": "daemon,sys", "mine": draw.choice((USER, f"@{GROUP}", f"daemon,{USER}"))}
    projects: tuple[Project, ...] = ()
    words = {}
    if draw.random() < 0.4:
        names = draw.sample(("chem", "proj_a", "bio.1"), draw.choice((1, 2)))
        projects = tuple(
            Project(
                name=name,
                words={"acl": draw.choice(("mine", "others"))} if draw.sometimes(0.4) else {},
            )
            for name in names
        )
        if draw.random() < 0.3:
            words["enforce_project"] = "true"
    return lists, projects, words


def _queues(
    draw: _Draw,
    hosts: Sequence[Host],
    groups: dict[str, tuple[str, ...]],
    gpus: Sequence[Gpus],
    environments: Sequence[ParallelEnvironment],
    lists: dict[str, str],
    projects: Sequence[Project],
) -> tuple[Queue, ...]:
    found = []
    for name in draw.sample(_QUEUE_NAMES, draw.choice((1, 2, 2, 3, 4))):
        places = [*groups, *(host.name for host in hosts)]
        own = ("@allhosts",) if draw.random() < 0.5 else (draw.choice(places),)
        names = {one for place in own for one in groups.get(place, (place,))}
        there = [host for host in hosts if host.name in names]
        found.append(
            Queue(
                name=name,
                hosts=own,
                slots=_slots(draw, groups, there),
                environments=_pe_list(draw, environments, groups, there),
                values=_values(draw, gpus, there),
                words=_limits(draw, lists, projects),
                state=draw.choice(("d", "s")) if draw.sometimes(0.06) else "",
            )
        )
    return tuple(found)


def _slots(draw: _Draw, groups: dict[str, tuple[str, ...]], there: Sequence[Host]) -> str:
    cores = there[0].all_cores
    default = draw.choice((cores, cores, cores, cores // 2, 4))
    overrides = ""
    if draw.random() < 0.35:
        host = draw.choice(there)
        places = [name for name, own in groups.items() if host.name in own]
        place = draw.choice([host.name, *places])
        overrides = f",[{place}={draw.choice((host.all_cores, host.all_cores // 2, 2))}]"
        default = draw.choice((1, default))
    return f"{default}{overrides}"


def _pe_list(
    draw: _Draw,
    environments: Sequence[ParallelEnvironment],
    groups: dict[str, tuple[str, ...]],
    there: Sequence[Host],
) -> str:
    names = [one.name for one in environments]
    if not names or draw.sometimes(0.1):
        return "NONE"
    # The first is the usual one, in most queues.
    chosen = draw.sample(names, draw.randint(1, len(names)))
    if names[0] not in chosen and draw.random() < 0.6:
        chosen.append(names[0])
    text = " ".join(chosen)
    if draw.sometimes(0.12):
        place = draw.choice([*groups, *(host.name for host in there)])
        text += f",[{place}={draw.choice(names)}]"
    return text


def _values(draw: _Draw, gpus: Sequence[Gpus], there: Sequence[Host]) -> dict[str, str]:
    values = {}
    for one in gpus:
        counts = [host.gpus[one.complex] for host in there if one.complex in host.gpus]
        if one.level == "queue" and counts and draw.random() < 0.8:
            # The same on all hosts of the queue: those without such GPUs are not in it.
            if len(counts) == len(there):
                values[one.complex] = str(min(counts))
        elif counts and draw.sometimes(0.15):
            values[one.complex] = str(draw.choice((0, 1, 2)))
    return values


def _limits(draw: _Draw, lists: dict[str, str], projects: Sequence[Project]) -> dict[str, str]:
    words = {"h_rt": draw.choice(_H_RT)}
    if draw.sometimes(0.12):
        words["h_vmem"] = draw.choice(("4G", "16G", "65536M"))
    if draw.sometimes(0.12):
        words["user_lists"] = draw.choice(tuple(lists))
    if draw.sometimes(0.1):
        words["xuser_lists"] = draw.choice(tuple(lists))
    if projects and draw.sometimes(0.3):
        words[draw.choice(("projects", "projects", "xprojects"))] = draw.choice(projects).name
    if draw.sometimes(0.12):
        words["qtype"] = "INTERACTIVE"
    words["shell_start_mode"] = draw.choice(("unix_behavior", "unix_behavior", "posix_compliant"))
    if draw.sometimes(0.1):
        words["s_rt"] = "01:00:00"
    return words


def _quotas(draw: _Draw, site: Site) -> dict[str, tuple[str, ...]]:
    found = {}
    for number in range(draw.choice((0, 0, 0, 1, 2))):
        queue = draw.choice(site.queues).name
        who = draw.choice(
            ("users {*}", "users *", f"users {USER}", "users {@mine}", "users {@others}",
             f"users !{USER}", "users {*,!daemon}")
        )  # fmt: skip
        where = draw.choice(
            ("", f"queues {queue}", f"queues {{{queue}}}", f"queues !{queue}", "hosts {*}",
             f"hosts {site.hosts[-1].name}", "hosts {@allhosts}", "hosts @allhosts")
        )  # fmt: skip
        if site.projects and draw.random() < 0.2:
            where = f"projects {draw.choice(('{*}', site.projects[0].name, '!*'))}"
        elif site.environments and draw.random() < 0.15:
            where = f"pes {site.environments[0].name}"
        limits = [f"slots={draw.choice((1, 2, 4, 8, 16))}"]
        limits += [f"{one.complex}={draw.choice((0, 1, 2))}" for one in site.gpus] * 2
        if site.memory in site.complexes:
            limits.append(f"{site.memory}={draw.choice(('8G', '50000M'))}")
        chosen = draw.sample(limits, 1)[0]
        words = ["limit", *([who] if draw.random() < 0.7 else []), where, "to", chosen]
        rules = [" ".join(word for word in words if word)]
        if draw.random() < 0.2:  # only the first rule of a set that matches counts
            rules.append("limit users {*} to slots=1")
        found[f"quota{number + 1}"] = tuple(rules)
    return found
