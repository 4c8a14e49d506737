"""Random sites as real Slurms: one accounting database for all, a controller for each.

Nodes that run no job are nodes of a cloud that never start: Slurm judges requests for them
and allocates them, and a job on them stays `CONFIGURING`. Files, sockets and ports are the
twins' own, and processes end by their ids, so that other tests may run at the same time.
"""

from __future__ import annotations

import grp
import os
import pwd
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, final

import msgspec
from random_sites import USER, Account, Gpus, Kind, Part, Site
from site_texts import gres_text, live_names, nodes_text, sacctmgr_lines
from slurm_daemons import Daemon, TwinError, ask, free_ports, wait_until
from slurm_database import SlurmDatabase

from teho.clusters.catalogue import read_cluster
from teho.clusters.write import cluster_text
from teho.model.cluster import Cluster
from teho.model.member import Live
from teho.schedulers.command import Completed, run
from teho.schedulers.slurm.inventory import slurm_cluster
from teho.schedulers.slurm.live import slurm_live

__all__ = ["Ground", "Job", "SiteTwin", "nodes_in"]

_REFUSED = re.compile(
    r"error|problem|unknown|invalid|can't|doesn't exist|nothing modified", re.IGNORECASE
)
_GPUS = re.compile(r"gpu(?::([^:(,]+))?(?::(\d+)\(IDX|\(CNT:(\d+)\))")
_GPUS_OF_JOB = re.compile(r"gpu(?::([^:(,]+))?:(\d+)()")
_BEGUN = {"CONFIGURING", "RUNNING", "COMPLETING", "COMPLETED", "FAILED"}
_LASTING = ("Assoc", "Partition", "QOS", "Invalid", "Bad")
"""How reasons begin that do not go away by themselves on an idle site."""
_PATIENCE_S = 8.0
_PATIENCE_FOR_END_S = 12.0
_PORTS_PER_SITE = 8
_FIXED = """\
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
GresTypes=gpu
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,sched_min_interval=0,bf_interval=2
PriorityType=priority/multifactor
ReturnToService=2
SlurmctldTimeout=300
SlurmdTimeout=300
KillWait=1
CompleteWait=0
MinJobAge=600
SuspendProgram=/bin/true
ResumeProgram=/bin/true
SuspendTime=86400
SuspendTimeout=1
ResumeTimeout=65000
"""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a job that was really submitted; whole-job figures."""

    number: str = ""
    """Empty: it was not taken."""
    said: str = ""
    """The words of sbatch if it was not taken, else the reason why the job does not begin."""
    begun: bool = False
    nodes: int = 0
    cpus: int = 0
    memory_mib: float = 0.0
    gpus: dict[str, int] = {}
    """By type; those without a type under the empty word."""
    billing: float | None = None
    time_min: str = ""
    record: str = ""


class Ground:
    """The database on which all sites stand; to be used as a context."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.database = SlurmDatabase(directory / "db")
        self._count = 0
        self._names: dict[str, str] = {}
        self._ports = free_ports(8 * _PORTS_PER_SITE)

    def __enter__(self) -> Ground:  # noqa: PYI034 - Self is not in Python 3.10
        self.directory.chmod(0o755)
        try:
            self.database.start()
        except BaseException:
            self.database.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.database.stop()

    @contextmanager
    def started(self, site: Site, *, live: bool = False) -> Iterator[SiteTwin]:
        """Start a site and end it again."""
        self._count += 1
        # What a cluster has in the database serves every site with the same QOS and accounts.
        limits = repr((site.qos, site.accounts))
        known = self._names.get(limits)
        name = known or f"s{self._count}"
        with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=self.directory) as folder:
            # One after the other: a site finds the ports of the last but seven free.
            begin = self._ports.start + _PORTS_PER_SITE * (self._count % 8)
            ports = range(begin, begin + _PORTS_PER_SITE)
            twin = SiteTwin(site, name, Path(folder), self.database, ports, live=live)
            try:
                twin.start(known=known is not None)
                self._names[limits] = name
                yield twin
            finally:
                twin.stop()

    def learn(self, types: set[str]) -> None:
        """Tell the database of GPUs once, so that limits on them can be set before a start."""
        words = {
            "SelectTypeParameters": "CR_Core_Memory",
            "AccountingStorageTRES": ",".join(
                ["gres/gpu", *(f"gres/gpu:{name}" for name in sorted(types))]
            ),
        }
        gpus = tuple(Gpus(name, 1) for name in sorted(types))
        kind = Kind(name="n", count=1, sockets=1, cores=1, memory_mib=1000, gpus=gpus)
        site = Site(
            seed="",
            words=words,
            kinds=(kind,),
            parts=(Part("p", ("n",)),),
            accounts=(Account("x"),),
        )
        with self.started(site):
            pass


@final
class SiteTwin:
    """A running site, as its ordinary user meets it."""

    def __init__(
        self,
        site: Site,
        name: str,
        directory: Path,
        database: SlurmDatabase,
        ports: range,
        *,
        live: bool,
    ) -> None:
        self.site, self.name, self.directory, self.live = site, name, directory, live
        self._ports = ports
        self.conf = directory / "slurm.conf"
        self.home = directory / "home"
        self._database = database
        self._daemons: list[Daemon] = []
        who = pwd.getpwnam(USER)
        ids = (f"--reuid={who.pw_uid}", f"--regid={who.pw_gid}", "--init-groups")
        self._as_user = ("setpriv", *ids, "--")
        self._ids = who.pw_uid, who.pw_gid
        self._environment = {"SLURM_CONF": str(self.conf)}
        places = ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "TEHO_HOME")
        self._user_environment = {
            **self._environment,
            **{key: str(self.home / key) for key in places},
            "HOME": str(self.home),
            "USER": USER,
            "LOGNAME": USER,
        }

    def start(self, *, known: bool) -> None:
        """Start the controller, and nodes; `known`: the database has QOS and accounts already."""
        self.directory.chmod(0o755)
        for folder in ("state", "spool", "log", "home"):
            (self.directory / folder).mkdir()
        os.chown(self.home, *self._ids)
        self._write_files()
        if not known:
            self._sacctmgr()
        self._begin()

    def restart(self) -> None:
        """Start the controller again without memory: jobs that were cancelled leave traces.

        Nodes that were to start for them are not as they were, for minutes.
        """
        self.stop()
        shutil.rmtree(self.directory / "state")
        (self.directory / "state").mkdir()
        self._begin()

    def _begin(self) -> None:
        self._daemon("slurmctld", ["slurmctld", "-D", "-i"])
        wait_until(self._answers, self._daemons, "slurmctld")
        if self.live:
            self._start_nodes()
        for kind in self.site.kinds:
            if kind.drained:
                first = kind.count - kind.drained + 1
                nodes = f"nodename={kind.name}-n[{first}-{kind.count}]"
                told = self.as_root("scontrol", "update", nodes, "state=drain", "reason=broken")
                if told.returncode:
                    raise TwinError(f"scontrol: {told.stderr}")

    def stop(self) -> None:
        if self.live and self._daemons:
            with suppress(subprocess.TimeoutExpired):
                self.as_root("scancel", "--full", "--signal=KILL", f"--user={USER}")
                self.as_root("scancel", f"--user={USER}")
        for daemon in reversed(self._daemons):
            daemon.stop()
        self._daemons.clear()

    def as_root(self, *argv: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return ask(argv, self._environment, stdin)

    def as_user(
        self, *argv: str, stdin: str = "", env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        own = {**self._user_environment, **(env or {})}
        # The job's folder is the user's own, as it would be there.
        words = ("sh", "-c", 'cd "$HOME" && exec "$@"', "sh", *argv)
        return ask((*self._as_user, *words), own, stdin)

    def discovered(self) -> Cluster:
        """Have Teho discover the site as its user, write the site's file, and read it.

        Raises:
            TehoError: it does not discover it, or the file does not read.
        """

        found = slurm_cluster(
            self._ask, user=USER, host="login1", today=datetime.now(timezone.utc).date()
        )
        path = self.directory / f"{found.name}.toml"
        path.write_text(cluster_text(found))
        return read_cluster(path)

    def rights(self) -> Live:
        """Return what Teho learns of the site as it runs, asked by its user."""
        own = pwd.getpwnam(USER)
        groups = [grp.getgrgid(one).gr_name for one in os.getgrouplist(USER, own.pw_gid)]
        return slurm_live(self._ask, user=USER, groups=groups)

    def _ask(self, argv: Sequence[str], /, **how: Any) -> Completed:
        # In this process: its Python may be where no ordinary user finds it.
        own = [f"{key}={value}" for key, value in self._user_environment.items()]
        return run([*self._as_user, "env", *own, *argv], **how)

    def refuses(self, script: str) -> str:
        """Return why Slurm does not take a script; empty where it does."""
        told = self.as_user("sbatch", "--test-only", stdin=script)
        return told.stderr.strip() or "refused" if told.returncode else ""

    def submitted(self, script: str) -> Job:
        """Submit a script for real, see what it is given, and cancel it.

        If it does not begin, and not for a limit, it has a second chance on a site without a past.
        """
        job = self._submitted(script)
        if job.begun or job.said.startswith(_LASTING):
            return job
        self.restart()
        return self._submitted(script)

    def _submitted(self, script: str) -> Job:
        told = self.as_user("sbatch", "--parsable", "--no-requeue", stdin=script)
        if told.returncode:
            return Job(said=told.stderr.strip() or "refused")
        number = told.stdout.strip().split(";")[0]
        try:
            return self._settled(number)
        finally:
            self.as_root("scancel", number)
            self._until_gone()

    def _settled(self, number: str) -> Job:
        end_s = time.monotonic() + _PATIENCE_S
        while True:
            record = self.as_root("scontrol", "show", "job", "-d", number).stdout
            words = dict(re.findall(r"(\w+)=(\S*)", record))
            begun = words.get("JobState") in _BEGUN
            stuck = words.get("Reason", "").startswith(_LASTING)
            if begun or stuck or time.monotonic() > end_s:
                return _job(number, words, record, begun=begun)
            time.sleep(0.1)

    def _until_gone(self) -> None:
        """Wait until no job holds a node, so that the next finds the site idle."""
        end_s = time.monotonic() + _PATIENCE_FOR_END_S
        while time.monotonic() < end_s:
            if not self.as_root("squeue", "-h", "-a").stdout.strip():
                return
            time.sleep(0.1)

    def _write_files(self) -> None:
        ports = self._ports
        device = self.directory / "gpu"
        for number in range(max((kind.all_gpus for kind in self.site.kinds), default=0)):
            Path(f"{device}{number}").symlink_to("/dev/null")
        host = socket.gethostname()
        words = {"PrivateData": "cloud", **self.site.words}
        own = "".join(f"{key}={value}\n" for key, value in words.items() if value)
        here = self.directory
        self.conf.write_text(
            f"ClusterName={self.name}\n"
            f"SlurmctldHost={host}(127.0.0.1)\n"
            f"SlurmctldPort={ports[0]}\n"
            f"AuthInfo=socket={self._database.munge_socket}\n"
            f"AccountingStoragePort={self._database.port}\n"
            f"AccountingStoragePass={self._database.munge_socket}\n"
            f"StateSaveLocation={here}/state\n"
            f"SlurmdSpoolDir={here}/spool/%n\n"
            f"SlurmctldPidFile={here}/slurmctld.pid\n"
            f"SlurmdPidFile={here}/spool/%n.pid\n"
            f"SlurmctldLogFile={here}/log/slurmctld.log\n"
            f"SlurmdLogFile={here}/log/%n.log\n"
            f"{_FIXED}{own}" + nodes_text(self.site, self.name, ports[1:], host, live=self.live)
        )
        (here / "gres.conf").write_text(gres_text(self.site, str(device), live=self.live))

    def _sacctmgr(self) -> None:
        lines = sacctmgr_lines(self.site, self.name)
        told = self.as_root("sacctmgr", "-i", stdin="\n".join([*lines, "quit", ""]))
        said = told.stdout + told.stderr
        wrong = [line for line in said.splitlines() if _REFUSED.search(line)]
        if told.returncode or wrong:
            raise TwinError("sacctmgr: {}\n{}".format("\n".join(wrong) or said, "\n".join(lines)))

    def _daemon(self, name: str, argv: list[str]) -> None:
        log = self.directory / "log" / f"{name}.out"
        self._daemons.append(Daemon(argv, log, self._environment))

    def _answers(self) -> bool:
        return self.as_root("scontrol", "ping").returncode == 0

    def _start_nodes(self) -> None:
        names = [name for _, name in live_names(self.site)]
        for name in names:
            self._daemon(name, ["unshare", "--uts", "--", "slurmd", "-D", "-N", name])

        def ready() -> bool:
            asked = ("sinfo", "-a", "-h", "-N", "-n", ",".join(names), "-o", "%N %t")
            lines = set(self.as_root(*asked).stdout.splitlines())
            return len(lines) == len(names) and all(not line.endswith("unk*") for line in lines)

        if names:
            wait_until(ready, self._daemons, "the nodes")


def _job(number: str, words: Mapping[str, str], record: str, *, begun: bool) -> Job:
    tres = dict(pair.split("=", 1) for pair in words.get("TRES", "").split(",") if "=" in pair)
    if "AllocTRES" in words and "=" in words["AllocTRES"]:
        tres = dict(pair.split("=", 1) for pair in words["AllocTRES"].split(","))
    gpus: dict[str, int] = {}
    memory_mib = 0.0
    for nodes, memory, gres in re.findall(
        r"^\s+Nodes=(\S+) CPU_IDs=\S* Mem=(\d+) GRES=(\S*)", record, re.MULTILINE
    ):
        count = nodes_in(nodes)
        memory_mib += count * int(memory)
        # Nodes that run no job have no devices, and count.
        for kind, used, counted in re.findall(_GPUS, gres):
            gpus[kind] = gpus.get(kind, 0) + count * int(used or counted)
    if not gpus:  # Slurm leaves out devices of a type that several lines of gres.conf give
        for kind, used, counted in re.findall(_GPUS_OF_JOB, words.get("JOB_GRES", "")):
            gpus[kind] = gpus.get(kind, 0) + int(used or counted)
    many = words.get("NumNodes", "0").split("-")[0]
    return Job(
        number=number,
        begun=begun,
        said="" if begun else words.get("Reason", "no record"),
        nodes=int(many) if many.isdigit() else 0,
        cpus=int(words.get("NumCPUs", "0").split("-")[0]),
        memory_mib=memory_mib,
        gpus=gpus,
        billing=float(tres["billing"]) if "billing" in tres else None,
        time_min=words.get("TimeLimit", ""),
        record=record,
    )


def nodes_in(names: str) -> int:
    """Return the number of nodes in a list such as `g1-n[1-2,4],c2-n3`."""
    count = 0
    for name in re.findall(r"[^,\[]+(?:\[[^\]]*\])?", names):
        inside = re.search(r"\[(.*)\]", name)
        for span in inside.group(1).split(",") if inside else ["1"]:
            first, _, last = span.partition("-")
            count += int(last) - int(first) + 1 if last else 1
    return count
