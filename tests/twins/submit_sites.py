"""A twin as its user sees it: `teho` on its login node, and the scheduler's own word as witness."""

from __future__ import annotations

import os
import pwd
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

import teho
from support import TEHO
from teho.clusters.catalogue import load_cluster

__all__ = ["PATIENCE_S", "Account", "OnGridEngine", "OnSlurm", "Site", "Told"]

HELLO = "echo begin; sleep 2; echo end; exit {}"
ARRAY = "sleep 1; exit $((${SLURM_ARRAY_TASK_ID:-$SGE_TASK_ID} == 2))"
STEPS = """\
import time, teho
for _ in range(10**6):
    sum(range(500_000))
    time.sleep(0.005)
    teho.step()"""
CHECKPOINTS = """\
if [ -n "$SLURM_RESTART_COUNT" ] || [ "$RESTARTED" = 1 ]; then echo again; exit 0; fi
trap 'echo told; exit 1' USR1
echo up
while :; do sleep 0.1; done"""
PATIENCE_S = 400.0


class Told(msgspec.Struct, frozen=True):
    """What a command of Teho's told."""

    code: int
    log: str
    said: str

    @property
    def number(self) -> str:
        return self.find(r"\bjob (\d+)")

    @property
    def states(self) -> list[str]:
        """The first words of the states in their order, such as `running`."""
        return re.findall(r"^teho: \d\d:\d\d:\d\d job \d+ (\w+)", self.said, re.MULTILINE)

    @property
    def end(self) -> str:
        """Such as `Job 1 completed after 2.0 s of 10 min`."""
        return self.find(r"^[✓✗i·] (Job .*)")

    def find(self, pattern: str) -> str:
        found = re.search(pattern, self.said, re.MULTILINE)
        assert found, self.said
        return found.group(1)


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """A record of sacct's or qacct's: of a job, of a task, or of one of its runs."""

    exit_code: int
    elapsed_s: int
    start: str
    end: str
    state: str = ""
    partition: str = ""
    nodes: int = 0
    cores: int = 0
    gpus: int = 0
    memory_gib: float = 0.0


class Site:
    """A twin as its user sees it; what differs between the schedulers is below."""

    size: tuple[str, ...]
    """Resources of a small job."""
    need: tuple[str, ...]
    """The same with a time limit."""
    notice: str
    """What `--signal` takes so that a program is told some seconds after its start."""

    def __init__(self, name: str, folder: Path, environment: Mapping[str, str], user: str) -> None:
        folder.mkdir(exist_ok=True)
        self._waiting = 0
        self.folder, self.home, who = folder, folder / "teho home", pwd.getpwnam(user)
        os.chown(folder, who.pw_uid, who.pw_gid)
        ids = (f"--reuid={who.pw_uid}", f"--regid={who.pw_gid}", "--clear-groups")
        self._as_user = ("setpriv", *ids, "--") if who.pw_uid else ()
        places = {"XDG_CONFIG_HOME": folder / "config", "XDG_CACHE_HOME": folder / "cache"}
        self._environment = {
            **{key: value for key, value in os.environ.items() if key != "COLUMNS"},
            **environment,
            **{key: str(path) for key, path in {**places, "TEHO_HOME": self.home}.items()},
            "USER": user,
            "LOGNAME": user,
        }
        account = load_cluster(name, {}).account
        self._plan = ("--cluster", name, "--even-if-retired", "--framework", "none")
        self._plan += ("--account", account.example) if account.required else ()

    def run(self, *argv: str) -> Told:
        """Run a command as the user."""
        done = subprocess.run(
            [*self._as_user, *argv],
            env=self._environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return Told(done.returncode, done.stdout, done.stderr)

    def teho(self, *arguments: str) -> Told:
        return self.run(*TEHO, *arguments)

    def follow(self, *arguments: str) -> Told:
        return self.teho("submit", *self._plan, "--follow", *arguments)

    def submit(self, *arguments: str) -> str:
        """Submit a small job, and return its number."""
        told = self.teho("submit", *self._plan, *self.need, *arguments)
        assert told.code == 0, told.said
        return told.log.strip()

    def first_job(self, *options: str, code: int) -> Told:
        arguments = ("--gpus", "1", "--time", "15min", "--name", "hello", *options)
        return self.follow(*arguments, "--", "bash", "-c", HELLO.format(code))

    def array(self) -> Told:
        return self.follow(*self.need, "--array", "1-3", "--", "bash", "-c", ARRAY)

    def trial(self) -> Told:
        """Try a program that never ends by itself."""
        # Grid Engine gives a job nothing of this environment, not even which Teho is tested.
        source = Path(teho.__file__).parents[1]
        lines = (f"export PYTHONPATH='{source}'", f"export TEHO_HOME='{self.home}'")
        given = [word for line in lines for word in ("--line", line)]
        need = (*self.size, "--time", "36h", *given)
        return self.follow("--trial", *need, "--", sys.executable, "-c", STEPS)

    def while_followed(self, number: str, act: Callable[[], None]) -> Told:
        """Do something to a job while somebody follows it to its end."""
        with ThreadPoolExecutor(1) as one:
            followed = one.submit(self.teho, "status", number, "--follow")
            act()
            return followed.result()

    def cancelled(self) -> Told:
        number = self.submit("--name", "long", "--", "bash", "-c", "echo up; sleep 300")

        def act() -> None:
            until(lambda: "running" in self.teho("status", "long").log)
            assert self.teho("cancel", "long").said == f"teho: job {number} is cancelled\n"

        return self.while_followed(number, act)

    def waits(self) -> tuple[str, Told]:
        """Return the number of a job, and what was told of another that waited for it, held."""
        first, let_go = self.first_to_wait("--name", "first")
        second = self.submit("--after", "first", "--", "echo", "second")

        def act() -> None:
            self.hold(second)
            let_go()
            until(lambda: "held" in self.teho("status", second).log)
            self.release(second)

        return first, self.while_followed(second, act)

    def first_to_wait(self, *options: str) -> tuple[str, Callable[[], None]]:
        """Submit a job for another to wait for; return its number, and what lets it end."""
        self._waiting += 1
        go = self.folder / f"go-{self._waiting}"
        waiting = f"until [ -e '{go}' ]; do sleep 0.2; done"
        return self.submit(*options, "--", "bash", "-c", waiting), go.touch

    def again(self) -> Told:
        """Run a job that is told before its end, and then begins again."""
        options = ("--signal", self.notice, "--requeue", "--")
        number = self.submit(*options, "bash", "-c", CHECKPOINTS)
        return self.while_followed(number, lambda: self.hurry(number))

    def hold(self, number: str) -> None:
        raise NotImplementedError

    def release(self, number: str) -> None:
        raise NotImplementedError

    def hurry(self, number: str) -> None:
        """Let a job that was queued again start at once."""
        raise NotImplementedError

    def to_its_limit(self) -> Told:
        raise NotImplementedError

    def accounts(self, number: str, count: int = 1) -> list[Account]:
        """Return the records of a job, once there are so many."""
        found: list[Account] = []

        def there() -> bool:
            found[:] = self.ask(number)
            return len(found) >= count

        until(there)
        return found

    def ask(self, number: str) -> list[Account]:
        raise NotImplementedError


class OnSlurm(Site):
    size = ("--gpus", "1")
    need = (*size, "--time", "10min")
    notice = "9min45s"

    def hold(self, number: str) -> None:
        assert self.run("scontrol", "hold", number).code == 0

    def release(self, number: str) -> None:
        assert self.run("scontrol", "release", number).code == 0

    def hurry(self, number: str) -> None:
        queue = ("squeue", "-h", "-j", number, "-o", "%T %r")
        until(lambda: self.run(*queue).log == "PENDING BeginTime\n")
        # Slurm has its pause so that the end of the first run cannot be taken for the second's.
        time.sleep(2)
        assert self.run("scontrol", "update", f"jobid={number}", "starttime=now").code == 0

    def to_its_limit(self) -> Told:
        # The shortest that Slurm knows. Followed at its end alone: a follower asks ever more
        # rarely, and Slurm looks at the limits every half minute.
        number = self.submit("--time", "1min", "--", "bash", "-c", "echo up; sleep 300")
        until(lambda: any(one.state == "TIMEOUT" for one in self.ask(number)))
        return self.teho("status", number, "--follow")

    def ask(self, number: str) -> list[Account]:
        columns = "state,exitcode,elapsedraw,start,end,partition,nnodes,alloctres"
        shown = self.run("sacct", "-D", "-X", "-n", "-P", "-j", number, "-o", columns)
        assert shown.code == 0, shown.said
        return [_slurm_account(line.split("|")) for line in shown.log.splitlines()]


def _slurm_account(words: list[str]) -> Account:
    state, code, elapsed, start, end, partition, nodes, tres = words
    held = dict(item.split("=") for item in tres.split(",") if item)
    memory = re.fullmatch(r"([\d.]+)([MG])", held.get("mem", "0M"))
    assert memory, tres
    return Account(
        state=state,
        exit_code=int(code.split(":")[0]),
        elapsed_s=int(elapsed),
        start=start,
        end=end,
        partition=partition,
        nodes=int(nodes),
        cores=int(held.get("cpu", 0)),
        gpus=int(held.get("gres/gpu", 0)),
        memory_gib=float(memory.group(1)) / (1024 if memory.group(2) == "M" else 1),
    )


class OnGridEngine(Site):
    size = ("--gpus", "0", "--cpus", "1", "--mem", "2GiB")
    need = (*size, "--time", "15min")
    notice = "14min55s"

    def hold(self, number: str) -> None:
        assert self.run("qhold", number).code == 0

    def release(self, number: str) -> None:
        assert self.run("qrls", number).code == 0

    def hurry(self, number: str) -> None:
        """Nothing to do: it starts at once by itself."""

    def to_its_limit(self) -> Told:
        # The site takes no job of less than 15 min: this one is cut short while it waits.
        first, let_go = self.first_to_wait()
        number = self.submit("--after", first, "--", "bash", "-c", "echo up; sleep 300")

        def act() -> None:
            assert self.run("qalter", "-l", "h_rt=0:0:5,h_vmem=2G", number).code == 0
            let_go()

        return self.while_followed(number, act)

    def ask(self, number: str) -> list[Account]:
        records = re.split(r"^=+\n", self.run("qacct", "-j", number).log, flags=re.MULTILINE)[1:]
        return [_grid_engine_account(record) for record in records]


def _split(row: str) -> tuple[str, str, str]:
    return row.partition(" ")


def _grid_engine_account(record: str) -> Account:
    rows = {key: value.strip() for key, _, value in map(_split, record.splitlines())}
    return Account(
        exit_code=int(rows["exit_status"].split()[0]),
        elapsed_s=round(float(rows["ru_wallclock"].rstrip("s"))),
        start=rows["start_time"],
        end=rows["end_time"],
    )


def until(condition: Callable[[], bool]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end_s, "it did not come true"
        time.sleep(0.3)
