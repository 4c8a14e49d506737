"""A twin: a throw-away Slurm with the nodes, partitions, QOS and limits of a catalogue's file.

    python tests/twins/slurm_twin.py narval

starts one, prints the environment in which `sbatch`, `squeue` and `sacct` speak to it, and
ends it on Ctrl-C or SIGTERM. Nothing of it touches a Slurm, munge or MariaDB of the
machine: files, sockets and ports are its own, and processes end by their ids.

Two nodes of each kind (one for kinds of slices) run a slurmd, and jobs really run there.
The others, up to the site's count, are nodes of a cloud that never start: Slurm counts them
when it judges a request, and prefers the live ones when it starts a job. What of a site's
rules Slurm cannot hold is listed in `slurm_conf`.

Each running node has its own name and address, and its jobs find the others by theirs:
namespaces of Linux keep that from the machine, whose `/etc/hosts` is not touched.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import CompletedProcess
from typing import final

import slurm_conf
from running import Running
from slurm_conf import Count
from slurm_daemons import Daemon, TwinError, ask, free_ports, wait_until, why_not
from slurm_database import SlurmDatabase

from teho.clusters.catalogue import load_cluster
from teho.model.cluster import Cluster

__all__ = ["SlurmTwin", "live_nodes", "several"]

_AS_HOST = """hostname "$1"
mount --bind "$2" /etc/hosts
shift 2
exec "$@\""""


def live_nodes(cluster: Cluster) -> dict[str, int]:
    """Return how many nodes of each kind run jobs: two of each, one of those with slices."""
    return {kind.name: 1 if kind.gpu and kind.gpu.part_of else 2 for kind in cluster.nodes}


@final
class SlurmTwin(Running):
    """A running Slurm of a cluster's shape.

    Args:
        cluster: the cluster to stand for.
        directory: a folder for it; its path is to be short.
        live: how many nodes of each kind run jobs; None: as `live_nodes` says.
        asleep: whether the site's other nodes are there, none of which ever starts a job.
        apart: whether each node sees its own processes alone, as nodes of a cluster do.
        lines: more lines of slurm.conf. Slurm takes the last value of an option.
    """

    def __init__(
        self,
        cluster: Cluster,
        directory: Path,
        *,
        live: Mapping[str, int] | None = None,
        asleep: bool = True,
        apart: bool = False,
        lines: Sequence[str] = (),
    ) -> None:
        self.cluster = cluster
        self.directory = directory
        awake = live_nodes(cluster) if live is None else live
        self._lines = lines
        self._counts = {
            kind.name: Count(
                awake.get(kind.name, 0),
                slurm_conf.nodes_of(cluster, kind) if asleep else awake.get(kind.name, 0),
            )
            for kind in cluster.nodes
        }
        self.conf = directory / "slurm.conf"
        self.environment = {"SLURM_CONF": str(self.conf)}
        self._database = SlurmDatabase(directory / "db")
        self._daemons: list[Daemon] = []
        self._log = directory / "log"
        self._apart = ["--pid", "--fork", "--mount-proc", "--kill-child"] if apart else []

    def start(self) -> None:
        """Start all of its processes."""
        self._log.mkdir(parents=True, exist_ok=True)
        self._database.start()
        self._write_files()
        self._add_to_database()
        self._start()

    def run(self, *argv: str, stdin: str = "") -> CompletedProcess[str]:
        """Run a command with this twin's environment."""
        return ask(argv, self.environment, stdin)

    def judge(self, script: str) -> CompletedProcess[str]:
        """Ask whether Slurm would take a script: `returncode` is 0 if so, `stderr` says why not."""
        return self.run("sbatch", "--test-only", stdin=script)

    def stop(self) -> None:
        """End the jobs, then the daemons, by their process ids."""
        if self._daemons:
            self._end_jobs()
        for daemon in reversed(self._daemons):
            daemon.stop()
        self._daemons.clear()
        self._database.stop()

    def _end_jobs(self) -> None:
        try:
            self.run("scancel", "--full", "--signal=KILL", f"--user={os.geteuid()}")
            self.run("scancel", f"--user={os.geteuid()}")
            wait_until(self._has_no_steps, self._daemons, "the end of all jobs", 15.0)
        except TwinError:
            pass  # the daemons go all the same
        for pid in self._step_daemons():
            os.kill(pid, signal.SIGKILL)

    def _has_no_steps(self) -> bool:
        return not self._step_daemons()

    def _step_daemons(self) -> list[int]:
        """Return the processes that slurmd left beside itself for the steps of jobs."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                name = (folder / "comm").read_text().strip()
                if name == "slurmstepd" and bytes(self.conf) in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
            except OSError:
                continue
        return found

    def _write_files(self) -> None:
        names = slurm_conf.live_names(self.cluster, self._counts)
        ports = free_ports(len(names) + 2)
        gpus = self.directory / "gpu"
        most = max((kind.gpu.count or 8 for kind in self.cluster.nodes if kind.gpu), default=0)
        for number in range(most):
            Path(f"{gpus}{number}").symlink_to("/dev/null")  # a device that is everywhere
        nodes = slurm_conf.conf_text(self.cluster, self._counts, ports[1:], socket.gethostname())
        self.conf.write_text(self._general(ports[0]) + nodes)
        gres = slurm_conf.gres_text(self.cluster, self._counts, str(gpus))
        (self.directory / "gres.conf").write_text(gres)
        hosts = [f"127.0.1.{number} {name}\n" for number, name in enumerate(names, 1)]
        known = Path("/etc/hosts").read_text()
        (self.directory / "hosts").write_text(f"{known.rstrip()}\n{''.join(hosts)}")
        # Only for TaskPlugin=task/cgroup.
        conf = "ConstrainRAMSpace=yes\nIgnoreSystemd=yes\n"
        (self.directory / "cgroup.conf").write_text(conf)
        (self.directory / "job_submit.lua").write_text(slurm_conf.lua_text(self.cluster))
        for name in ("state", "spool"):
            (self.directory / name).mkdir(exist_ok=True)

    def _general(self, port: int) -> str:
        plugins = ["lua"]
        if self.cluster.dialect.time_required:
            plugins.append("require_timelimit")
        return f"""\
ClusterName={self.cluster.name}
SlurmctldHost={socket.gethostname()}(127.0.0.1)
SlurmctldPort={port}
FirstJobId={port + 10_000}
SlurmUser=root
PrivateData=cloud
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={self._database.munge_socket}
StateSaveLocation={self.directory}/state
SlurmdSpoolDir={self.directory}/spool/%n
SlurmctldPidFile={self.directory}/slurmctld.pid
SlurmdPidFile={self.directory}/spool/%n.pid
SlurmctldLogFile={self._log}/slurmctld.log
SlurmdLogFile={self._log}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu,nvme
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=5
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={self._database.port}
AccountingStoragePass={self._database.munge_socket}
AccountingStorageEnforce=associations,limits,qos
AccountingStorageTRES=gres/gpu
AccountingStoreFlags=job_comment,job_script
EnforcePartLimits=ALL
JobSubmitPlugins={",".join(plugins)}
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,sched_min_interval=0,bf_interval=2
PriorityType=priority/basic
ReturnToService=2
SlurmctldTimeout=300
SlurmdTimeout=300
MinJobAge=600
SuspendProgram=/bin/true
ResumeProgram=/bin/true
SuspendTime=86400
SuspendTimeout=30
ResumeTimeout=65000
{chr(10).join(self._lines)}
"""

    def sacctmgr(self, lines: Sequence[str]) -> None:
        """Change the database."""
        answer = self.run("sacctmgr", "-i", stdin="\n".join([*lines, "quit", ""]))
        said = answer.stdout + answer.stderr
        if answer.returncode or re.search(r"error|problem|unknown|invalid", said, re.IGNORECASE):
            raise TwinError(f"sacctmgr: {said}")

    def _limited(self) -> dict[str, list[str]]:
        """Return the names of the QOS by their limits: sacctmgr is slow, alike ones go together."""
        found: dict[str, list[str]] = {}
        for place in slurm_conf.places_of(self.cluster):
            found.setdefault(slurm_conf.limits_of(place), []).append(place.name)
        found.pop("", None)
        return found

    def _add_to_database(self) -> None:
        accounts = slurm_conf.accounts_of(self.cluster)
        qos = ",".join(name for names in self._limited().values() for name in names)
        lines = [
            f"add cluster {self.cluster.name}",
            f"add qos {qos} flags=DenyOnLimit",
            f"add account {','.join(accounts)} cluster={self.cluster.name}",
            f"add user root account={','.join(accounts)} cluster={self.cluster.name}",
            f"modify user root where cluster={self.cluster.name} set defaultaccount={accounts[0]}",
        ]
        if self.cluster.account.required:
            where = f"where cluster={self.cluster.name} account={accounts[0]}"
            # A QOS that counts a user's jobs overrides what her association says of them.
            counted = any(part.max_jobs for part in self.cluster.partitions)
            limit = "grpsubmitjobs" if counted else "maxsubmitjobs"
            lines.append(f"modify user root {where} set {limit}=0")
        self.sacctmgr(lines)

    def _start(self) -> None:
        log = self._log / "slurmctld.out"
        argv = [*self._as_host(socket.gethostname()), "slurmctld", "-D", "-i"]
        self._daemons.append(Daemon(argv, log, self.environment))
        wait_until(self._controller_answers, self._daemons, "slurmctld")
        # GPUs are known to the database since slurmctld named them to it just now.
        lines = [
            f"modify qos where name={','.join(names)} set {limits}"
            for limits, names in self._limited().items()
        ]
        self.sacctmgr([*lines, "add qos last"])
        wait_until(self._limits_are_known, self._daemons, "the limits of all QOS")
        names = slurm_conf.live_names(self.cluster, self._counts)
        for name in names:
            log = self._log / f"{name}.out"
            argv = [*self._as_host(name, *self._apart), "slurmd", "-D", "-N", name]
            self._daemons.append(Daemon(argv, log, self.environment))
        wait_until(self._nodes_are_up, self._daemons, "the nodes", 120.0)

    def _as_host(self, name: str, *namespaces: str) -> list[str]:
        """Return what puts a command on a host of this name, which knows the nodes' names."""
        hosts = str(self.directory / "hosts")
        shared = ["sh", "-ec", _AS_HOST, "sh", name, hosts]
        return ["unshare", "--uts", "--mount", *namespaces, *shared]

    def _controller_answers(self) -> bool:
        return self.run("scontrol", "ping").returncode == 0

    def _limits_are_known(self) -> bool:
        # The database tells in order what was changed.
        known = self.run("scontrol", "show", "assoc_mgr", "flags=qos").stdout
        return "QOS=last(" in known

    def _nodes_are_up(self) -> bool:
        names = slurm_conf.live_names(self.cluster, self._counts)
        if not names:
            return True
        found = self.run("sinfo", "-h", "-N", "-n", ",".join(names), "-o", "%N %t").stdout
        lines = set(found.splitlines())
        return len(lines) == len(names) and all(line.endswith(" idle") for line in lines)


@contextlib.contextmanager
def several(
    clusters: Sequence[Cluster], live: Mapping[str, int], *, asleep: bool
) -> Iterator[dict[str, SlurmTwin]]:
    """Start twins side by side, as most of a start is waiting; by the clusters' names."""

    def start(cluster: Cluster) -> SlurmTwin:
        # A short path, which pytest's own folders have not.
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="twin-"))
        return stack.enter_context(SlurmTwin(cluster, Path(folder), live=live, asleep=asleep))

    with contextlib.ExitStack() as stack:
        # Daemons end with the thread that started them: the threads outlive the twins.
        threads = stack.enter_context(ThreadPoolExecutor(len(clusters)))
        yield {twin.cluster.name: twin for twin in threads.map(start, clusters)}


def main() -> None:
    """Start a twin by hand."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("cluster")
    cluster = load_cluster(parser.parse_args().cluster)
    reason = why_not()
    if reason:
        sys.exit(reason)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with (
        tempfile.TemporaryDirectory(prefix=f"twin-{cluster.name}-") as directory,
        SlurmTwin(cluster, Path(directory)) as twin,
    ):
        accounts = ", ".join(slurm_conf.accounts_of(cluster))
        print(f"# accounts, the default first: {accounts}")
        print(f"export SLURM_CONF={twin.conf}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main()
