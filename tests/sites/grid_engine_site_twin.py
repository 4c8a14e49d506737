"""Random sites as real Grid Engines, each in a directory, a cell and namespaces of its own.

The hosts report the cores and the memory of the site, not those of this machine: their daemons
see another `/proc/meminfo` and another topology.
"""

from __future__ import annotations

import grp
import os
import pwd
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).parents[1] / "twins"))

import grid_engine_texts as texts
from grid_engine_shape import replaced
from grid_engine_sites import USER, Host, Site
from grid_engine_twin import PROGRAMS, SHARED, GridEngine
from grid_engine_twin import why_not as why_no_daemons
from node_namespaces import NodePair, why_no_nodes

from teho.clusters.catalogue import read_cluster
from teho.clusters.check import mistakes_in
from teho.clusters.write import cluster_text
from teho.model.cluster import Cluster
from teho.model.member import Live
from teho.schedulers.command import Completed, run
from teho.schedulers.grid_engine.inventory import grid_engine_cluster
from teho.schedulers.grid_engine.live import grid_engine_live

__all__ = ["Job", "SiteTwin", "started", "why_not"]

_PATIENCE_S = 3.0
"""A few rounds of the scheduler, which has one each second."""
_PATIENCE_IN_DOUBT_S = 8.0
"""If `qsub -w v` has said that the job can run."""
_PATIENCE_FOR_FACTS_S = 12.0
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "k": 1e3, "m": 1e6, "g": 1e9}
FACTS = 'echo "$NSLOTS $(ulimit -v) $QUEUE $(hostname)" > "facts.$JOB_ID"; sleep 30'
"""What a job's program does: it writes what it sees, then it waits."""


def why_not() -> str:
    """Return why no site can start here; empty where it can."""
    return why_no_daemons() or why_no_nodes()


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a job that was really submitted."""

    number: str = ""
    """Empty: it was not taken."""
    said: str = ""
    """The words of qsub if it was not taken, else why the job does not begin."""
    begun: bool = False
    slots: dict[str, int] = {}
    """By queue instance, such as `all.q@n1`."""
    consumed: dict[str, float] = {}
    """Of consumables that hosts and queues have less of than before; memory in bytes."""
    limits: dict[str, str] = {}
    """Its hard resource list."""
    environment: str = ""
    """Its parallel environment."""
    project: str = ""
    facts: tuple[str, ...] | None = None
    """What its program saw: NSLOTS, `ulimit -v`, QUEUE, host name. None: it wrote nothing."""
    output: str = ""
    """What the script printed."""

    @property
    def queues(self) -> set[str]:
        return {name.partition("@")[0] for name in self.slots}

    @property
    def hosts(self) -> set[str]:
        return {name.partition("@")[2] for name in self.slots}


class SiteTwin(GridEngine):
    """A running site, as its ordinary user meets it."""

    def __init__(self, site: Site, directory: Path) -> None:
        names = tuple(host.name for host in site.hosts)
        # A single host has a node too: its name and its hardware are not this machine's.
        pair = names if len(names) == 2 else (names[0], "unused")
        super().__init__(directory, (pair[0], pair[1]))
        self.site = site
        self.hosts = names
        self._count = 0
        self._idle: dict[str, float] = {}

    def _lay_out_nodes(self, nodes: NodePair) -> None:
        super()._lay_out_nodes(nodes)
        for host in self.site.hosts:
            memory = self.directory / f"meminfo-{host.name}"
            memory.write_text(texts.meminfo(host))
            cores = self.directory / f"cores-{host.name}"
            cores.write_text(f"0-{host.all_cores - 1}\n")
            online = "/sys/devices/system/cpu/online"
            for fake, real in ((memory, "/proc/meminfo"), (cores, online)):
                self._must("mount", "--bind", str(fake), real, host=host.name)

    def _hardware(self, host: str) -> dict[str, str]:
        one: Host = next(one for one in self.site.hosts if one.name == host)
        topology = f"package:{one.sockets} core:{one.cores} pu:1"
        return {"HWLOC_SYNTHETIC": topology, "HWLOC_THISSYSTEM": "1"}

    def _configure(self) -> None:
        super()._configure()
        site = self.site
        self._load("-Msconf", replaced(self._must("qconf", "-ssconf"), {"schedd_job_info": "true"}))
        self._load("-Mc", texts.complexes(self._must("qconf", "-sc"), site))
        for name in site.lists:
            self._load("-Au", texts.access_list(name, site))
        for project in site.projects:
            self._load("-Aprj", texts.project(project.name, site))
        shown = (SHARED / "util/resources/pe/smp").read_text()
        for environment in site.environments:
            self._load("-Ap", texts.environment(shown, environment))
        for name in site.groups:
            self._load("-Ahgrp", texts.host_group(name, site))
        for host in site.hosts:
            text = texts.host(self._must("qconf", "-se", host.name), site, host)
            self._load("-Me", text)
        template = self._must("qconf", "-sq")
        assert self._nodes
        for queue in site.queues:
            text = texts.queue(template, queue)
            self._load("-Aq", replaced(text, {"tmpdir": str(self._nodes.disk / "tmp")}))
            if queue.state:
                self._must("qmod", {"d": "-d", "s": "-sq"}[queue.state], queue.name)
        for name in site.quotas:
            self._load("-Arqs", texts.quota_set(name, site))
        if site.words:
            self._load_global(site.words)

    def _load_global(self, words: Mapping[str, str]) -> None:
        path = self.root / "global"
        path.write_text(replaced(self._must("qconf", "-sconf"), words))
        self._must("qconf", "-Mconf", str(path))

    def start(self) -> None:
        """Start the site, and note which hosts are idle."""
        super().start()
        self._idle = self._available()

    def discovered(self) -> tuple[Cluster, list[str]]:
        """Have Teho discover the site as its user; return what the file says, and its mistakes.

        Raises:
            TehoError: it does not discover it, or the file does not read.
        """
        there = {**os.environ, **self.environment}
        today = datetime.now(timezone.utc).date()
        host = self.hosts[0]
        found = grid_engine_cluster(
            self._ask, environment=there, host=host, today=today, name="site"
        )
        path = self.directory / f"{found.name}.toml"
        path.write_text(cluster_text(found))
        return read_cluster(path), mistakes_in(path)

    def rights(self) -> Live:
        """Return what the site says of the moment and of its user."""
        group = grp.getgrgid(pwd.getpwnam(USER).pw_gid).gr_name
        return grid_engine_live(self._ask, user=USER, groups=[group])

    def _ask(self, argv: Sequence[str], /, **how: Any) -> Completed:
        # In this process: its Python may be where no ordinary user finds it.
        user = pwd.getpwnam(USER)
        ids = (f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups")
        own = [f"{key}={value}" for key, value in self.environment.items()]
        # Not by the twin's `bin`, whose commands become that user themselves.
        words = ["setpriv", *ids, "env", *own, str(PROGRAMS / argv[0]), *argv[1:]]
        assert self._nodes
        return run(self._nodes.inside(self.hosts[0], words, self.home), **how)

    def refuses(self, script: str) -> str:
        """Return why Grid Engine cannot run a script on an empty cluster; empty where it can."""
        done = self.ask("qsub", "-w", "v", self._written(script))
        return "" if done.returncode == 0 else (done.stderr + done.stdout).strip() or "refused"

    @contextmanager
    def without_quotas(self) -> Iterator[None]:
        """Disable all resource quota sets for a while."""
        for name in self.site.quotas:
            self._load("-Mrqs", texts.quota_set(name, self.site, enabled=False))
        try:
            yield
        finally:
            for name in self.site.quotas:
                self._load("-Mrqs", texts.quota_set(name, self.site))

    def submitted(self, script: str, *, facts: bool = False, doubt: bool = True) -> Job:
        """Submit a script for real, see what it is given, and delete it.

        Args:
            script: what to submit.
            facts: whether to wait for what its program writes.
            doubt: whether to wait longer for its begin.
        """
        done = self.ask("qsub", "-terse", self._written(script))
        if done.returncode:
            return Job(said=(done.stderr + done.stdout).strip() or "refused")
        number = done.stdout.split()[-1]
        try:
            return self._settled(number, facts=facts, doubt=doubt)
        finally:
            self._delete(number)

    def _written(self, script: str) -> str:
        self._count += 1
        path = self.home / f"job{self._count}.sh"
        path.write_text(script)
        return path.name

    def _settled(self, number: str, *, facts: bool, doubt: bool) -> Job:
        end_s = time.monotonic() + (_PATIENCE_IN_DOUBT_S if doubt else _PATIENCE_S)
        while True:
            rows = self._rows(number)
            begun = any(one[1] not in {"qw", "hqw"} for one in rows)
            if begun or time.monotonic() > end_s:
                break
            time.sleep(0.1)
        shown = self.ask("qstat", "-j", number).stdout
        if not begun:
            return Job(number=number, said=_reason(shown))
        slots: dict[str, int] = {}
        for instance, _, count in rows:
            slots[instance] = slots.get(instance, 0) + count
        left = self._available()
        consumed = {key: full - left.get(key, full) for key, full in self._idle.items()}
        limits = _word(shown, "hard resource_list")
        seen, output = self._facts(number) if facts else (None, "")
        return Job(
            number=number,
            begun=True,
            slots=slots,
            consumed={key: value for key, value in consumed.items() if abs(value) > 1e-6},
            limits=dict(pair.split("=", 1) for pair in limits.split(",") if pair),
            environment=_word(shown, "parallel environment"),
            project=_word(shown, "project"),
            facts=seen,
            output=output,
        )

    def _rows(self, number: str) -> list[tuple[str, str, int]]:
        """Return the queue instance, the state and the slots of each of a job's rows."""
        shown = self.ask("qstat", "-xml", "-f", "-ne", "-u", "*").stdout
        found = []
        for listed in re.finditer(r"<Queue-List>(.*?)</Queue-List>", shown, re.DOTALL):
            name = re.search(r"<name>(.*?)</name>", listed.group(1))
            for job in re.finditer(r"<job_list.*?</job_list>", listed.group(1), re.DOTALL):
                if f"<JB_job_number>{number}<" in job.group():
                    state = re.search(r"<state>(.*?)</state>", job.group())
                    count = re.search(r"<slots>(\d+)</slots>", job.group())
                    assert name
                    assert state
                    assert count
                    found.append((name.group(1), state.group(1), int(count.group(1))))
        return found

    def _facts(self, number: str) -> tuple[tuple[str, ...] | None, str]:
        path = self.home / f"facts.{number}"
        end_s = time.monotonic() + _PATIENCE_FOR_FACTS_S
        while time.monotonic() < end_s:
            if path.exists() and path.read_text().strip():
                return tuple(path.read_text().split()), ""
            if not self._rows(number):
                break
            time.sleep(0.1)
        output = [one.read_text(errors="replace") for one in self.home.glob(f"*.[oe]{number}")]
        shown = self.ask("qstat", "-j", number).stdout
        errors = re.findall(r"^error reason.*", shown, re.MULTILINE)
        return None, "\n".join([*output, *errors])[-1500:]

    def _available(self) -> dict[str, float]:
        """Return what hosts and queues have left of consumables, by `place:name`."""
        found: dict[str, float] = {}
        place = ""
        for command in (("qhost", "-F"), ("qstat", "-f", "-F")):
            for line in self.ask(*command).stdout.splitlines():
                if line[:1].strip() and not line.startswith(("-", "#", "HOSTNAME", "queuename")):
                    place = line.split()[0]
                one = re.match(r"\s+([hq])c:([^=]+)=([\d.]+)([KMGTkmg]?)$", line)
                if one and (one.group(1) == "h") == (command[0] == "qhost"):
                    found[f"{place}:{one.group(2)}"] = float(one.group(3)) * _UNITS[one.group(4)]
        return found

    def _delete(self, number: str) -> None:
        """Delete a job, and wait until the next one finds the site idle."""
        self.ask(str(PROGRAMS / "qdel"), "-f", number)
        end_s = time.monotonic() + _PATIENCE_FOR_FACTS_S
        while time.monotonic() < end_s:
            if not self.ask(str(PROGRAMS / "qstat"), "-u", "*").stdout.strip():
                return
            time.sleep(0.1)


def _word(shown: str, name: str) -> str:
    """Return the value of one of the rows of `qstat -j`; empty: there is no such row."""
    found = re.search(rf"^{name}:\s+(\S+)", shown, re.MULTILINE)
    return found.group(1) if found else ""


def _reason(shown: str) -> str:
    """Return Grid Engine's reasons why a job waits."""
    _, _, rest = shown.partition("scheduling info:")
    return "; ".join(line.strip() for line in rest.splitlines() if line.strip()) or "waits"


@contextmanager
def started(site: Site) -> Iterator[SiteTwin]:
    """Run a site in a directory of its own, which goes away with it."""
    directory = Path(tempfile.mkdtemp(prefix="teho-grid-engine-site-"))
    try:
        with SiteTwin(site, directory) as twin:
            yield twin
    finally:
        shutil.rmtree(directory, ignore_errors=True)
