"""A throw-away Grid Engine with the shape of one cluster of the catalogue.

Everything lies in one directory, with a cell and ports of its own: the machine's own
Grid Engine and its `/etc/hosts` are not touched. Each kind of node is one queue, with
one node's slots, memory and disk as the queue's consumables, because two execution
hosts cannot share a machine: all hosts' daemons have the same port. Where jobs need two, the
hosts are nodes of `node_namespaces`, each with all kinds' queues; the first has the queue
master and takes the commands, and the parallel environment `ib` lays two slots on each.

Limits of Grid Engine's own: time, slots of one node, GPUs, memory a core, disk a core,
`node_type`, projects. A small job verifier (jsv(1)) in front of `qsub` says what those
cannot: that a time must be given, that there is a least time, and the queue of jobs with
GPUs. Their cores and memory are not counted, as on ARC4: such a job has one slot. Left
out: how many nodes of a kind there are.

Jobs come from an ordinary user, as root's lose `TMPDIR`: the commands in the twin's
`bin`, first on its PATH, run as `nobody`, and `home` is a directory that is hers.

    python tests/twins/grid_engine_twin.py arc4

starts one, prints the environment to use, and stops it on Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from grid_engine_shape import ENVIRONMENTS, complexes, host_rows, queues, replaced, verifier
from node_namespaces import NodePair
from running import Running

from teho.clusters.catalogue import load_cluster
from teho.model.cluster import Cluster

__all__ = ["GridEngine", "GridEngineTwin", "started", "why_not"]

PROGRAMS = Path("/usr/lib/gridengine")
SHARED = Path("/usr/share/gridengine")
ADMIN = "sgeadmin"
USER = "nobody"
CELL = "default"
PATIENCE_S = 60.0
"""A noisy machine may take long; a daemon that is not there after this is not coming."""
_ACTIVE = "spool/execd/*/active_jobs/*"
"""The folders of the jobs that an execution daemon runs: `13.1`."""
_LOST_CHECKS = 3
"""A job is sent again if it was lost in as many checks in a row."""

# Gives the jobs of root another home directory: the machine's own file of users is not touched.
WITH_HOME = 'mount --bind "$1" /etc/passwd && shift && exec "$@"'
# Ends its daemon when the pipe closes, so that nothing stays behind a test that is killed.
# Not by SIGTERM: the queue master spins for nine seconds to save what is thrown away.
GUARD = '"$@" & read -r _; kill -KILL $! 2> /dev/null; wait $!'


def why_not() -> str:
    """Return why a twin may not start here; empty where it may."""
    needed = [PROGRAMS / name for name in ("sge_qmaster", "sge_execd", "sge_shepherd", "qsub")]
    missing = [path.name for path in needed if not path.exists()]
    if missing:
        return f"Grid Engine is not installed here: no {', '.join(missing)}"
    if os.geteuid() != 0:
        return "not root: Grid Engine starts jobs as the users who send them"
    try:
        _names_of(socket.gethostname())
    except OSError as error:
        return f"the host name {socket.gethostname()!r} does not resolve: {error}"
    return ""


class GridEngine(Running):
    """One running Grid Engine without queues, as a context manager.

    Args:
        directory: an empty one, made open to all; those above it must be so already.
        nodes: names of the two execution hosts to make; none: this machine is the only one.
    """

    def __init__(self, directory: Path, nodes: tuple[str, str] | None = None) -> None:
        self.directory = directory
        self.root = directory / "sge"
        self.bin = directory / "bin"
        self.home = directory / "home"
        """Where to submit: scripts must be readable there, and output is written there."""
        master_port, exec_port = _free_ports()
        self.environment = {
            "SGE_ROOT": str(self.root),
            "SGE_CELL": CELL,
            "SGE_QMASTER_PORT": str(master_port),
            "SGE_EXECD_PORT": str(exec_port),
            "PATH": f"{self.bin}:{PROGRAMS}:{os.environ['PATH']}",
        }
        """What a client needs in its environment."""
        self.root_home: Path | None = None
        """Home directory of root in jobs, if set before the start; None: root's own."""
        self.hosts: tuple[str, ...] = nodes or (socket.gethostname(),)
        self._nodes = NodePair(nodes, directory / "nodes") if nodes else None
        self._guards: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start all of its processes."""
        self._lay_out()
        self._lay_out_user()
        if self._nodes:
            self._nodes.__enter__()
            self._lay_out_nodes(self._nodes)
        self._fill()
        self._start("sge_qmaster", lambda: self.ask("qconf", "-sh").returncode == 0)
        self._configure()
        for host in self.hosts:
            self._start("sge_execd", lambda host=host: self._reports(host), host)

    def ask(
        self,
        *argv: str,
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        host: str | None = None,
        patience_s: float = PATIENCE_S,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the twin's environment, in `home`, whatever its exit code.

        On its first host, if on no other.
        """
        place = cwd or self.home
        return subprocess.run(
            self.inside(argv, place, host),
            env={**os.environ, **self.environment, **(environment or {})},
            cwd=place,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=patience_s,
            check=False,
        )

    def inside(self, argv: Sequence[str], place: Path, host: str | None = None) -> Sequence[str]:
        """Return the command that runs another one in a folder on a host: on the first, if None."""
        return self._nodes.inside(host or self.hosts[0], argv, place) if self._nodes else argv

    def send_lost_jobs_again(self, ended: threading.Event) -> None:
        """Send jobs again that run for the master, but for no execution daemon, until an event.

        A job that asks to be queued again (exit status 99) may get lost: the master sends it back
        to a daemon that has not removed it yet. Grid Engine itself notices this after five minutes.
        """
        lost: Counter[str] = Counter()
        while not ended.wait(5.0):
            active = {one.name.partition(".")[0] for one in self.root.glob(_ACTIVE)}
            rows = self.ask("qstat", "-u", "*", "-s", "r").stdout.splitlines()[2:]
            for job in {row.split()[0] for row in rows if row.strip()}:
                lost[job] = 0 if job in active else lost[job] + 1
                if lost[job] == _LOST_CHECKS:
                    self.ask(str(PROGRAMS / "qmod"), "-rj", job)

    def stop(self) -> None:
        """End every job, then the daemons; to be called twice does no harm."""
        if self._guards:
            self.ask(str(PROGRAMS / "qdel"), "-u", "*")
            end_s = time.monotonic() + PATIENCE_S / 2
            while self.ask("qstat", "-u", "*").stdout and time.monotonic() < end_s:
                time.sleep(0.1)
        for guard in reversed(self._guards):
            assert guard.stdin is not None
            guard.stdin.close()
            guard.wait(PATIENCE_S)
        self._guards.clear()
        if self._nodes:
            self._nodes.stop()

    def _lay_out(self) -> None:
        """Write the cell's files, as the package's own script does."""
        common, spool = self.root / CELL / "common", self.root / "spool"
        for folder in (common, spool / "qmaster/job_scripts", spool / "db", spool / "execd"):
            folder.mkdir(parents=True)
        for name in ("bin", "lib", "utilbin"):
            (self.root / name).mkdir()
            (self.root / name / "lx-amd64").symlink_to(PROGRAMS)
        (self.root / "util").symlink_to(SHARED / "util")
        bootstrap = {
            "spooling_params": str(spool / "db"),
            "qmaster_spool_dir": str(spool / "qmaster"),
            "binary_path": str(PROGRAMS),
        }
        default = (SHARED / "default-bootstrap").read_text()
        (common / "bootstrap").write_text(replaced(default, bootstrap))
        host = self.hosts[0]
        (common / "act_qmaster").write_text(f"{host}\n")
        if not self._nodes:
            # Instead of an edit of /etc/hosts: whatever the address is called is this host.
            aliases = dict.fromkeys([host, "localhost", *_names_of(host)])
            (common / "host_aliases").write_text(" ".join(aliases) + "\n")

    def _lay_out_user(self) -> None:
        user = pwd.getpwnam(USER)
        self.directory.chmod(0o755)
        self.home.mkdir()
        os.chown(self.home, user.pw_uid, user.pw_gid)
        self.bin.mkdir()
        wrapper = self.bin / "as-user"
        wrapper.write_text(
            f'#!/bin/sh\nexec {shlex.join(_as(user))} {PROGRAMS}/"${{0##*/}}" "$@"\n'
        )
        wrapper.chmod(0o755)
        for name in ("qacct", "qalter", "qdel", "qhold", "qresub", "qrls", "qstat", "qsub"):
            (self.bin / name).symlink_to("as-user")

    def _lay_out_nodes(self, nodes: NodePair) -> None:
        """Lay the daemons' and the jobs' folders on each node's own disk, as sites do."""
        for host in self.hosts:
            self._must("install", "-d", "-o", ADMIN, str(nodes.disk / "execd"), host=host)
            self._must("install", "-d", "-m", "1777", str(nodes.disk / "tmp"), host=host)

    def _fill(self) -> None:
        """Fill the cell's data base, which belongs to Grid Engine's own user."""
        # Two twins at once must not share the groups by which a job's processes are found.
        group = 1_000_000 + 100 * int(self.environment["SGE_QMASTER_PORT"])
        rows = {
            "execd_spool_dir": str(
                self._nodes.disk / "execd" if self._nodes else self.root / "spool/execd"
            ),
            "load_report_time": "00:00:01",
            # Root may submit too: jobs whose programs the ordinary user cannot reach.
            "min_uid": "0",
            "min_gid": "0",
            "gid_range": f"{group}-{group + 99}",
            "reporting_params": "accounting=true reporting=false flush_time=00:00:01 "
            "joblog=false sharelog=00:00:00",
        }
        configuration = self.root / "configuration"
        default = (SHARED / "default-configuration").read_text()
        configuration.write_text(replaced(default, rows))
        admin = pwd.getpwnam(ADMIN)
        for path in [self.root, *self.root.rglob("*")]:
            os.chown(path, admin.pw_uid, admin.pw_gid, follow_symlinks=False)
        resources, database = SHARED / "util/resources", self.root / "spool/db"
        for argv in (
            ("spoolinit", "berkeleydb", "libspoolb", str(database), "init"),
            ("spooldefaults", "configuration", str(configuration)),
            ("spooldefaults", "complexes", str(resources / "centry")),
            ("spooldefaults", "usersets", str(resources / "usersets")),
            ("spooldefaults", "managers", ADMIN, "root"),
        ):
            self._must(*_as(admin), *argv)

    def _start(self, program: str, ready: Callable[[], bool], host: str | None = None) -> None:
        """Start a daemon behind its guard, and wait until it answers."""
        host = host or self.hosts[0]
        log = self.root / f"{program}-{host}.log"
        guarded = ["/bin/sh", "-c", GUARD, program, str(PROGRAMS / program)]
        if self.root_home and program == "sge_execd":
            users = self.directory / "passwd"
            root = f"root:x:0:0:root:{self.root_home}:/bin/bash\n"
            others = Path("/etc/passwd").read_text().splitlines(keepends=True)
            users.write_text(root + "".join(row for row in others if not row.startswith("root:")))
            guarded = ["unshare", "--mount", "sh", "-c", WITH_HOME, "sh", str(users), *guarded]
        with log.open("wb") as errors:
            guard = subprocess.Popen(
                self._nodes.inside(host, guarded, Path("/")) if self._nodes else guarded,
                env={**os.environ, **self.environment, **self._hardware(host), "SGE_ND": "true"},
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                cwd="/",
                start_new_session=True,
            )
        self._guards.append(guard)
        end_s = time.monotonic() + PATIENCE_S
        while not ready():
            if time.monotonic() > end_s or guard.poll() is not None:
                raise TimeoutError(f"{program} does not answer: {log.read_text()[-2000:]}")
            time.sleep(0.1)

    def _hardware(self, host: str) -> dict[str, str]:
        """Return variables by which a host's daemon sees other hardware than this machine's."""
        return {}

    def _reports(self, host: str) -> bool:
        rows = self.ask("qhost").stdout.splitlines()
        return any(row.startswith(f"{host} ") and "lx-" in row for row in rows)

    def _must(self, *argv: str, host: str | None = None) -> str:
        done = self.ask(*argv, cwd=Path("/"), host=host)
        if done.returncode:
            raise RuntimeError(f"{shlex.join(argv)}: {done.stdout}{done.stderr}")
        return done.stdout

    def _load(self, option: str, text: str) -> None:
        """Hand a text to `qconf`, which reads it from a file."""
        path = self.root / "loaded"
        path.write_text(text)
        self._must("qconf", option, str(path))

    def _configure(self) -> None:
        for host in self.hosts:
            self._must("qconf", "-ah", host)
            self._must("qconf", "-as", host)
        scheduler = {
            "schedule_interval": "0:0:1",
            "flush_submit_sec": "1",
            "flush_finish_sec": "1",
            "job_load_adjustments": "NONE",
            # Not by load: of two nodes, either might be a job's first.
            "queue_sort_method": "seqno",
        }
        self._load("-Msconf", replaced(self._must("qconf", "-ssconf"), scheduler))


class GridEngineTwin(GridEngine):
    """A Grid Engine with the shape of a cluster.

    Args:
        cluster: whose shape it takes.
        directory: an empty one, made open to all; those above it must be so already.
        nodes: names of the two execution hosts to make; none: this machine is the only one.
    """

    def __init__(
        self, cluster: Cluster, directory: Path, nodes: tuple[str, str] | None = None
    ) -> None:
        super().__init__(directory, nodes)
        self.cluster = cluster

    def _lay_out(self) -> None:
        super()._lay_out()
        # In front of the client, not of the queue master: `qsub -w v` asks only this one.
        judge = self.root / "verifier"
        judge.write_text(verifier(self.cluster))
        judge.chmod(0o755)
        (self.root / CELL / "common/sge_request").write_text(f"-jsv script:{judge}\n")

    def _configure(self) -> None:
        super()._configure()
        self._load("-Mc", complexes(self._must("qconf", "-sc"), self.cluster))
        environment = (SHARED / "util/resources/pe/smp").read_text()
        self._load("-Ap", environment)
        if self._nodes:
            for rows in ENVIRONMENTS:
                self._load("-Ap", replaced(environment, rows))
        project = f"name {self.cluster.account.example}\noticket 0\nfshare 0\nacl NONE\nxacl NONE\n"
        self._load("-Aprj", project)
        template = self._must("qconf", "-sq")
        for rows in queues(self.cluster, self.hosts):
            if self._nodes:
                rows |= {"pe_list": "smp ib nodes1 nodes2", "tmpdir": str(self._nodes.disk / "tmp")}
                rows["seq_no"] = f"0,[{self.hosts[1]}=1]"
            self._load("-Aq", replaced(template, rows))
        for host in self.hosts:
            # The queues have made it an execution host. Two rows only Grid Engine may write.
            shown = replaced(self._must("qconf", "-se", host), host_rows(self.cluster)).splitlines()
            kept = [row for row in shown if row.split()[0] not in {"load_values", "processors"}]
            self._load("-Me", "\n".join(kept) + "\n")


@contextmanager
def started(
    cluster: Cluster, nodes: tuple[str, str] | None = None, root_home: Path | None = None
) -> Iterator[GridEngineTwin]:
    """Run a twin in a directory of its own, which goes away with it."""
    # Not pytest's directory: that one is closed to the scheduler's own user.
    directory = Path(tempfile.mkdtemp(prefix="teho-grid-engine-"))
    try:
        twin = GridEngineTwin(cluster, directory, nodes)
        twin.root_home = root_home
        with twin:
            yield twin
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _as(user: pwd.struct_passwd) -> tuple[str, ...]:
    return ("setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups")


def _names_of(host: str) -> list[str]:
    name, others, _ = socket.gethostbyaddr(socket.gethostbyname(host))
    return [name, *others]


def _free_ports() -> tuple[int, int]:
    with socket.socket() as first, socket.socket() as second:
        first.bind(("", 0))
        second.bind(("", 0))
        return first.getsockname()[1], second.getsockname()[1]


def _main(arguments: Sequence[str]) -> int:
    reason = why_not()
    if reason or len(arguments) != 1:
        print(reason or "one argument: the name of a Grid Engine cluster", file=sys.stderr)
        return 1
    # SIGTERM must leave through the context managers, as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with started(load_cluster(arguments[0])) as twin:
            for name, value in twin.environment.items():
                print(f"export {name}={shlex.quote(value)}")
            print(f"# submit from {twin.home}", flush=True)
            signal.pause()
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
