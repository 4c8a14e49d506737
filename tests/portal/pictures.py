"""Take the pictures of docs/portal.md again: `python tests/portal/pictures.py`.

The runs are the recordings in `examples`, and real runs of small programs on simulated GPUs. Only
the page Programs shows runs that were never recorded: their times are written by this script. The
script needs root: it runs in namespaces of its own, in which the users and the machine have other
names. Look at each picture before you commit it.
"""

from __future__ import annotations

import grp
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/stubs"), str(ROOT / "tests/portal")]

import nvml_stub  # noqa: E402 - the paths above lead to it
from nvml_stub import Scenario  # noqa: E402
from portal_process import PortalProcess, environment, portal  # noqa: E402

from browsers import ARGUMENTS, BROWSER  # noqa: E402
from made_runs import make_run  # noqa: E402
from other_users import ALICE, BOB, as_user  # noqa: E402 - as above
from support import TEHO  # noqa: E402

DOCS = ROOT / "docs"
HOST = "roihu-g1"
USERS = {0: "maija", ALICE: "aino", BOB: "eero"}
"""User's number -> the name in the pictures."""
RENAME = """
hostname "$1" && mount --bind "$2/passwd" /etc/passwd && mount --bind "$2/hosts" /etc/hosts &&
shift 2 && exec "$@"
"""
PROGRAM = """
import sys, time
import numpy as np
import teho
end_s = time.monotonic() + float(sys.argv[sys.argv.index("--seconds") + 1])
weights = np.random.default_rng(1).normal(size=(512, 512))
while time.monotonic() < end_s:
    for _ in range(8):
        weights = np.tanh(weights @ weights)
    teho.step()
sys.exit("error: the file labels.csv has no column `digit`" if "--labels" in sys.argv else 0)
"""
GPUS = ("gpus 4", "name * NVIDIA GH200 480GB", "memory_mib * 97871", "power_limit_w * 900",
        "processes 0 parent", "processes 1 parent", "processes 2 parent",
        "processes 3 parent")  # fmt: skip
SCENARIOS = {
    "even": ("0 * 93 81920 640 1980 52 0",),
    "one-idle": ("0 * 91 81920 630 1980 52 0", "0 2 0 620 105 345 31 0"),
    "low": ("0 * 14 20480 210 1980 41 0",),
}
RUNS = (
    ("finetune", "even", "python finetune.py --seconds 150"),
    ("evaluate", "low", "python evaluate.py --split test --seconds 130"),
    ("labels", "even", "python train.py --labels labels.csv --seconds 12"),
)
SECONDS = 160.0
"""For how long the run of the first pictures goes on before they are taken."""


def renamed() -> None:
    """Run this script again where the users and the machine have other names."""
    entries = [line.split(":") for line in Path("/etc/passwd").read_text().splitlines()]
    users = [":".join([USERS.get(int(uid), name), word, uid, *rest])
             for name, word, uid, *rest in entries]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "passwd").write_text("\n".join([*users, ""]))
        hosts = f"{Path('/etc/hosts').read_text()}\n127.0.0.1 {HOST}\n"
        (Path(folder) / "hosts").write_text(hosts)
        subprocess.run(
            ["unshare", "--mount", "--uts", "sh", "-c", RENAME, "sh", HOST, folder, sys.executable,
             __file__],
            check=True,
        )  # fmt: skip


def job(number: int, account: str) -> dict[str, str]:
    """Return the variables of a job on Roihu, whose bills Teho knows."""
    now_s = int(time.time())
    return {
        "SLURM_JOB_ID": str(number), "SLURM_CLUSTER_NAME": "roihu",
        "SLURM_JOB_PARTITION": "gpumedium", "SLURM_JOB_ACCOUNT": account,
        "SLURM_JOB_NUM_NODES": "1", "SLURM_JOB_NODELIST": os.uname().nodename,
        "SLURM_GPUS_ON_NODE": "4", "SLURM_CPUS_ON_NODE": str(len(os.sched_getaffinity(0))),
        "SLURM_JOB_START_TIME": str(now_s), "SLURM_JOB_END_TIME": str(now_s + 6 * 3600),
    }  # fmt: skip


def started(
    folder: Path, library: Path, name: str, scenario: str, command: str, number: int
) -> subprocess.Popen[bytes]:
    """Record one program on simulated GPUs."""
    path = Scenario((*GPUS, *SCENARIOS[scenario])).write(folder / f"{name}.txt")
    account = "project_2001234" if number % 2 else "project_2005678"
    env = {**os.environ, **environment(folder), **nvml_stub.environment(library, path),
           **job(number, account), "OPENBLAS_NUM_THREADS": "1",
           "PYTHONPATH": str(ROOT / "src"),
           "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}  # fmt: skip
    return subprocess.Popen(
        [*TEHO, "run", "-q", "--name", name, "--tag", f"seed={number}", "--", *command.split()],
        env=env, cwd=folder / "programs",
    )  # fmt: skip


def generated(folder: Path) -> None:
    """Write runs of two programs: one got other GPUs, and one got another tag."""
    for number in range(73):
        later = number >= 50
        gpu = "NVIDIA H100 80GB HBM3" if later else "NVIDIA A100-SXM4-80GB"
        make_run(folder / "home", 8 * number, gpus=8, gpu=gpu, cluster="nibi",
                 elapsed_s=(4320.0 if later else 7260.0) + number % 5 * 30,
                 command=("torchrun", "--nproc-per-node", "8", "pretrain.py"))  # fmt: skip
        make_run(folder / "home", 8 * number + 3, gpus=1, gpu=gpu, cluster="nibi",
                 elapsed_s=(1295.0 if number >= 58 else 900.0) + number % 3 * 9,
                 tags={"split": "full"} if number >= 58 else {},
                 command=("python", "evaluate.py", "--split", "test"))  # fmt: skip
        make_run(folder / "home", 8 * number + 5, elapsed_s=300.0 + number % 4,
                 cluster="nibi", command=("python", "prepare.py", "--shards", "64"))  # fmt: skip


def shared(folder: Path) -> None:
    """Share runs of three people with the own group; with root, other users are real."""
    from teho.store.share import share

    project = folder / "project"
    project.mkdir()
    project.chmod(0o1777)
    group = grp.getgrgid(os.getegid()).gr_name
    for above in (folder, folder.parent):
        above.chmod(0o711)  # other users reach their own folders
    for run in sorted((folder / "home/runs").iterdir()):
        user = {"one-idle-gpu": None, "tiny-kernels": ALICE, "starved": BOB, "fed": BOB}.get(
            run.name.split("-", 2)[2].rpartition("-")[0], -1
        )
        if user is None:
            share(run, project, group)
        elif user > 0:
            theirs = folder / f"home of {user}" / "runs" / run.name
            shutil.copytree(run, theirs)
            for path in (theirs.parents[1], *theirs.parents[1].rglob("*")):
                os.chown(path, user, user)
            as_user(user, [os.getegid()], lambda run=theirs: share(run, project, group))


@contextmanager
def opened(running: PortalProcess) -> Iterator[Any]:
    """Yield a function that takes a picture of a page."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=ARGUMENTS)
        context = browser.new_context()
        context.new_page().goto(running.links[-1])
        state = context.storage_state()

        def take(name: str, address: str, height: int, *, width: int = 1280,
                 scheme: str = "light", wait: str = "", judged: bool = False) -> None:  # fmt: skip
            page = browser.new_context(
                viewport={"width": width, "height": height}, color_scheme=scheme,
                storage_state=state,
            ).new_page()  # fmt: skip
            page.set_default_timeout(120_000)
            page.goto(f"http://127.0.0.1:{running.port}/{address}")
            page.wait_for_load_state("load")
            end_s = time.monotonic() + 120
            not_yet = page.locator("tbody .mark", has_text="Ended well")
            while judged and not_yet.count() and time.monotonic() < end_s:
                time.sleep(2)
                page.reload()
            if wait:
                page.locator(wait).first.wait_for()
                time.sleep(12)  # some samples for the curves
            page.screenshot(path=DOCS / f"portal-{name}.png")
            page.context.close()

        yield take
        browser.close()


def main() -> None:
    """Record the runs, and take all pictures."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder, other = Path(name) / "a", Path(name) / "b"
        library = nvml_stub.build(Path(name) / "library")
        (folder / "programs").mkdir(parents=True)
        for program in ("pretrain", "finetune", "evaluate", "train"):
            (folder / "programs" / f"{program}.py").write_text(PROGRAM)
        for run in (ROOT / "examples/learn/runs").glob("2*"):
            shutil.copytree(run, folder / "home/runs" / run.name)
        idle = ROOT / "examples/runs/one-idle-gpu"
        run_id = json.loads((idle / "run.json").read_bytes())["id"]
        shutil.copytree(idle, folder / "home/runs" / run_id)
        shared(folder)
        ending = [started(folder, library, *run, number) for number, run in enumerate(RUNS, 7001)]
        running = started(folder, library, "pretrain", "one-idle",
                          "python pretrain.py --layers 24 --seconds 3600", 7000)  # fmt: skip
        stack.callback(running.wait)
        stack.callback(running.terminate)
        time.sleep(SECONDS)
        for process in ending:
            process.wait()
        env = {"TEHO_SHARED": str(folder / "project")}
        with portal(folder, on_port=True, env=env) as one, opened(one) as take:
            run_id = next((folder / "home/runs").glob("*-pretrain-*")).name
            ids = {key: next((folder / "home/runs").glob(f"*-{key}-*")).name
                   for key in ("starved", "fed", "preloaded")}  # fmt: skip
            take("runs-dark", "runs", 900, judged=True)
            take("home", "", 1090, wait="[data-fact=power]:has-text('W')")
            take("run", f"run?id={run_id}", 1500, wait="#live-plots canvas")
            take("runs-dark", "runs?sort=finding&order=asc", 900, scheme="dark")
            take("phone", "runs", 844, width=390)
            compared = "&".join(f"run={value}" for value in ids.values())
            take("compare", f"compare?{compared}", 1300)
            take("usage", "usage?by=account", 900)
            take("group", "runs?of=group", 760, judged=True)
            take("plan", "plan?gpus=2&gpu-memory=60GiB&time=12h&cluster=lumi&launcher=torchrun"
                 "&account=project_462000123&command=train.py+--epochs+90", 1500)  # fmt: skip
        generated(other)
        with portal(other, on_port=True) as one, opened(one) as take:
            take("programs", "runs?by=program", 900)


if __name__ == "__main__":
    if os.uname().nodename == HOST:
        main()
    else:
        renamed()
