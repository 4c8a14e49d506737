"""This section shows what the portal costs with many runs, a large run, and many running runs.

The runs are generated. Each run has only a description and a verdict, without samples. The
commands, names, clusters, GPUs and verdicts are random, but the same in each measurement. `teho
portal` listens on a Unix socket. The time of a request is the time from the connection to the last
byte. *Usable* is the time in Chromium until the page and its scripts are loaded. *First plot* and
*all plots* are the times until the first plot is drawn, or all plots are drawn. *Report not kept*
means that the portal has just been started, and has to compute the report during the visit. The
time of a zoom is the time from the release of the mouse button to the next picture.

The other tools have the same number of runs. In these tools, the command of a run is a parameter,
and the time of the run is a metric. MLflow and Trackio need more than ten minutes to write 10,000
runs, and Aim was measured only with 1,000 runs. So with 10,000 runs, only TensorBoard has rows. To
limit the time of the benchmark, no other tool was measured with 100,000 runs. A tool that is not
installed has no row.

The CPU time and the memory are those of all processes of the portal, with those that compute
verdicts and reports. The memory is the highest PSS during 10 s of requests. The *age of a value* is
its age just before a newer value replaces it on the page. The portal sends this age with the value,
as an upper limit, and the benchmark adds the time that has passed since then.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import msgspec
from big_report import generated
from common import CACHE, Figures, Row, environment, say, stub_environment
from process_tree import tree_bytes, tree_cpu_s

from teho.model.allocation import Allocation
from teho.model.device import Device
from teho.model.run import FORMAT_VERSION, End, Node, Run

_HERE = Path(__file__).parent
_ROUNDS = 15
_NEW = 100
_MB = 1e6
_PROGRAMS = tuple(
    f"python {name}.py --config configs/{name}-{size}.yaml"
    for name in ("train", "pretrain", "finetune", "evaluate", "prepare")
    for size in ("small", "base", "large", "7b", "13b", "70b")
)
_MODELS = ("NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3", "AMD Instinct MI250X")
_CLUSTERS = (("lumi", "standard-g"), ("roihu", "gpumedium"), ("narval", ""), ("", ""))
_PEERS = {1_000: ("mlflow", "tensorboard", "trackio", "aim"), 10_000: ("tensorboard",)}
"""Number of runs -> the tools that are measured. MLflow and Trackio need more than ten minutes to
write 10,000 runs; Aim was not tried with them."""
_KINDS = ("", "gpu_never_used", "gpu_idle", "input_bound", "few_cores_used", "job_too_short")
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_REQUESTS = {
    "home": ("home page, from the server", "/", None),
    "list": ("list, first page, from the server", "/runs", 100.0),
    "last": ("list, last page", "/runs?page={last}", None),
    "search": ("search in commands", "/runs?text=finetune+70b+seed=99", 150.0),
    "filter": ("filter by cluster and end", "/runs?cluster=lumi&outcome=failed", 150.0),
    "sort": ("sort by time", "/runs?sort=time", 150.0),
    "hours": ("sort by name", "/runs?sort=name&order=asc", 150.0),
    "finding": ("sort by finding", "/runs?sort=finding", 150.0),
    "cost": ("sort by cost", "/runs?sort=cost", 150.0),
    "unused": ("sort by GPU hours without a kernel", "/runs?sort=unused", 150.0),
    "kind": ("filter by finding", "/runs?kind=gpu_never_used", 150.0),
    "least": ("filter by cost", "/runs?cost=100", 150.0),
    "programs": ("one line for each program", "/runs?by=program", None),
    "usage": ("sums by month", "/usage", None),
}
"""Name -> what is measured, the address, and the budget in ms for 100,000 runs."""


def write_runs(home: Path, first: int, count: int) -> None:
    """Write descriptions of runs; the same number always gives the same run."""
    for number in range(first, first + count):
        chance = random.Random(number)
        began = datetime(2024, 1, 1, tzinfo=timezone.utc) + timedelta(minutes=14 * number)
        program = chance.choice(_PROGRAMS).split()
        cluster, partition = chance.choice(_CLUSTERS)
        gpus = chance.choice((0, 1, 1, 1, 4, 8))
        elapsed_s = chance.lognormvariate(7, 1.5)
        run_id = f"{began:%Y%m%d-%H%M%S}-{program[1][:-3]}-{number:06d}"
        run = Run(
            format=FORMAT_VERSION,
            id=run_id,
            name=chance.choice(("", "", "baseline", "ablation")),
            tags={"seed": str(number % 100)} if number % 3 else {},
            command=(*program, f"seed={number % 100}") if number % 2 else tuple(program),
            started_at=began,
            host="login1",
            end=End(
                at=began + timedelta(seconds=elapsed_s),
                elapsed_s=elapsed_s,
                exit_code=chance.choice((0, 0, 0, 0, 1)),
            ),
        )
        model = chance.choice(_MODELS)
        node = Node(
            name="g1",
            started_at=began,
            period_s=1.0,
            sealed=True,
            cores=tuple(range(16)),
            allocation=Allocation(
                scheduler="slurm", job_id=str(10_000 + number), cluster=cluster, partition=partition
            )
            if cluster
            else Allocation(),
            devices=tuple(
                Device(id=f"GPU-{number}-{i}", index=i, name=model, vendor="nvidia")
                for i in range(gpus)
            ),
        )
        directory = home / "runs" / run_id
        (directory / "nodes").mkdir(parents=True)
        (directory / "run.json").write_bytes(msgspec.json.encode(run))
        (directory / "nodes" / "g1.json").write_bytes(msgspec.json.encode(node))


def write_verdicts() -> None:
    """Save a verdict of each run in the index; the same run always has the same verdict."""
    from teho.config.settings import load_settings
    from teho.model.listed_run import Judged
    from teho.show.portal.recordings import Recordings
    from teho.store.index_file import IndexFile

    recordings = Recordings(load_settings())
    home = IndexFile.open().home(recordings.runs)
    found = {}
    for run_id in home.ids():
        chance = random.Random(run_id)
        kind = chance.choice(_KINDS)
        words = kind.replace("_", " ") or "good"
        found[run_id] = (
            0,
            Judged(
                severity="warning" if kind else "good",
                kind=kind,
                words=words,
                verdict=f"The verdict of this run is: {words}.",
                gpu_busy_percent=chance.uniform(0, 100),
                energy_j=chance.lognormvariate(16, 2),
                cost=chance.lognormvariate(3, 2),
                cost_unit="GPU-h",
            ),
        )
    home.save_verdicts(recordings.judge, found)


class Portal:
    """A portal that runs."""

    def __init__(self, env: Mapping[str, str], folder: Path) -> None:
        self._path = str(folder / "portal.sock")
        self._log = folder / "portal.log"
        began_s = time.monotonic()
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "teho", "portal", "--socket", self._path],
                env=dict(env), stdout=log, stderr=log,
            )  # fmt: skip
        while not self._answers():
            if self._process.poll() is not None:
                raise RuntimeError(self._log.read_text())
            time.sleep(0.02)
        self.start_s = time.monotonic() - began_s
        self.pid = self._process.pid

    def _answers(self) -> bool:
        try:
            return bool(self.ask("/style.css"))
        except OSError:
            return False

    def connect(self) -> http.client.HTTPConnection:
        """Return a connection to its socket."""
        connection = http.client.HTTPConnection("localhost", timeout=120)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(120)
        connection.sock.connect(self._path)
        return connection

    def ask(self, address: str) -> bytes:
        """Return a page."""
        connection = self.connect()
        connection.request("GET", address)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        if answer.status != 200:
            raise RuntimeError(f"{address}: {answer.status} {data[:300]!r}")
        return data

    def times_ms(self, address: str, rounds: int) -> Figures:
        """Measure a page; the first request, which fills caches, is left out."""
        times = []
        for _ in range(rounds + 1):
            began_s = time.perf_counter()
            self.ask(address)
            times.append((time.perf_counter() - began_s) * 1000)
        return Figures.of(*times[1:])

    def end(self) -> None:
        """End it as Ctrl-C does."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait(30)


@contextlib.contextmanager
def portal(env: Mapping[str, str], folder: Path) -> Iterator[Portal]:
    running = Portal(env, folder)
    try:
        yield running
    finally:
        running.end()


def measure(*, quick: bool) -> list[Row]:
    rows = [] if quick else _peers()
    for count in (200,) if quick else (1_000, 10_000, 100_000):
        rows += _many(count, 3 if quick else _ROUNDS)
    rows += _large_run(2 if quick else 64, 0.02 if quick else 3.0, 1 if quick else 5)
    rows += _live(3 if quick else 50, 5.0 if quick else 300.0)
    return rows


def _peers() -> list[Row]:
    """Measure the lists of other tools, if `PEERS_PYTHON` names the Pythons that have them.

    They need hundreds of packages, so they are not in the environment of the benchmarks. Several
    Pythons are separated by colons: the packages of Aim do not fit those of the others.
    """
    pythons = [one for one in os.environ.get("PEERS_PYTHON", "").split(":") if one]
    rows = []
    for count, tools in _PEERS.items() if pythons else ():
        with tempfile.TemporaryDirectory(prefix="teho-bench-") as name:
            env = environment(Path(name))
            write_runs(Path(env["TEHO_HOME"]), 0, count)
            began_s = time.perf_counter()
            with portal(env, Path(name)) as running:
                running.ask("/runs")
                first_s = time.perf_counter() - began_s
                ours = running.times_ms("/runs", _ROUNDS)
        for tool in tools:
            python = next((one for one in pythons if _has(one, tool)), None)
            if python is None:
                continue
            say(f"{tool}, {count:,} runs")
            with tempfile.TemporaryDirectory(prefix="teho-bench-") as name:
                argv = [python, str(_HERE / "peer_portal.py"), tool, str(count), f"{name}/data"]
                done = subprocess.run(argv, stdout=subprocess.PIPE, check=True)
            theirs = msgspec.json.decode(done.stdout.splitlines()[-1])
            peer = {"mlflow": "MLflow", "tensorboard": "TensorBoard"}.get(tool, tool.capitalize())
            rows += [
                Row(what=f"{count:,} runs: from the start of the server to the first list",
                    unit="s", ours=Figures.of(first_s), peer=peer,
                    theirs=Figures.of(theirs["first_s"])),
                Row(what=f"{count:,} runs: list, first page, from the server", unit="ms",
                    ours=ours, peer=peer, theirs=Figures.of(*theirs["times_ms"])),
            ]  # fmt: skip
    return rows


def _has(python: str, tool: str) -> bool:
    known = [python, "-c", f"import importlib.util as u; exit(not u.find_spec({tool!r}))"]
    return not subprocess.run(known, check=False).returncode


def _many(count: int, rounds: int) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="teho-bench-") as name:
        folder = Path(name)
        env = environment(folder)
        home = Path(env["TEHO_HOME"])
        say(f"{count:,} runs: writing")
        kept = CACHE / f"portal-{count}"
        if not kept.exists():
            CACHE.mkdir(mode=0o700, exist_ok=True)
            shutil.rmtree(kept.with_suffix(".part"), ignore_errors=True)
            write_runs(kept.with_suffix(".part"), 0, count)
            kept.with_suffix(".part").rename(kept)
        home.symlink_to(kept)
        named = f"{count:,} runs"
        is_full = count == 100_000
        say("the index from nothing")
        began_s = time.perf_counter()
        _index(env)
        first_s = time.perf_counter() - began_s
        rows = [
            Row(what=f"{named}: index from nothing", unit="s", ours=Figures.of(first_s),
                budget=60 if is_full else None),
        ]  # fmt: skip
        began_s = time.perf_counter()
        _index(env)
        unchanged_s = time.perf_counter() - began_s
        write_runs(kept, count, _NEW)
        began_s = time.perf_counter()
        _index(env)
        new_s = time.perf_counter() - began_s
        for path in sorted((kept / "runs").iterdir())[-_NEW:]:
            shutil.rmtree(path)
        rows += [
            Row(what=f"{named}: {_NEW} new runs, with the start of the process", unit="s",
                ours=Figures.of(new_s), budget=1 if is_full else None),
            Row(what=f"{named}: no new run, with the start of the process", unit="s",
                ours=Figures.of(unchanged_s)),
        ]  # fmt: skip
        say("the verdicts")
        code = f"import sys; sys.path.insert(0, {str(_HERE)!r})\n"
        code += "import portal; portal.write_verdicts()"
        subprocess.run([sys.executable, "-c", code], env=dict(env), check=True)
        say("the pages")
        with portal(env, folder) as running:
            for what, address, budget in _REQUESTS.values():
                times = running.times_ms(address.format(last=count // 50), rounds)
                rows.append(
                    Row(what=f"{named}: {what}", unit="ms", ours=times,
                        budget=budget if is_full else None)
                )  # fmt: skip
            highest_bytes = 0
            for _ in range(20):
                running.ask("/")
                running.ask("/runs")
                highest_bytes = max(highest_bytes, tree_bytes(running.pid)["Pss"])
                time.sleep(0.5)
            size = sum(len(running.ask(one)) for one in ("/", "/style.css", "/portal.js"))
            rows += [
                Row(what=f"{named}: home page in all, uncompressed", unit="kB",
                    ours=Figures.of(size / 1000), budget=150 if is_full else None),
                Row(what=f"{named}: memory of all processes of the portal (PSS)", unit="MB",
                    ours=Figures.of(highest_bytes / _MB),
                    budget=200 if is_full else None),
            ]  # fmt: skip
        rows += _in_browser(
            env, folder, rounds, {f"{named}: home page": "", f"{named}: list": "runs"},
            300 if is_full else None,
        )  # fmt: skip
    return rows


def _index(env: Mapping[str, str]) -> None:
    """Bring the index up to date, in a process of its own, as `teho portal` does at its start."""
    code = (
        "from teho.config.settings import load_settings\n"
        "from teho.show.portal.recordings import Recordings\n"
        "Recordings(load_settings()).refresh()"
    )
    subprocess.run([sys.executable, "-c", code], env=dict(env), check=True)


def _in_browser(
    env: Mapping[str, str],
    folder: Path,
    rounds: int,
    pages: Mapping[str, str],
    budget: float | None,
) -> list[Row]:
    """Measure in Chromium until a page is usable."""
    rows = []
    with _browser(env, folder) as (page, base):
        for what, address in pages.items() if page else ():
            times = []
            for _ in range(rounds + 1):
                page.goto(base + address, wait_until="domcontentloaded")
                entry = "performance.getEntriesByType('navigation')[0]"
                times.append(page.evaluate(f"{entry}.domContentLoadedEventEnd"))
            rows.append(Row(what=f"{what}, usable in Chromium", unit="ms",
                            ours=Figures.of(*times[1:]), budget=budget))  # fmt: skip
    return rows


_NEXT_PICTURE = """() => new Promise(done => addEventListener("mouseup", () => {
  const began = performance.now();
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - began)));
}, { capture: true, once: true }))"""


def _drawn(
    env: Mapping[str, str], folder: Path, rounds: int, named: str, address: str
) -> list[Row]:
    """Measure in Chromium until the plots of a run are drawn, and a zoom through all of them."""
    times: dict[str, list[float]] = {"first": [], "all": [], "zoom": [], "new": []}

    def visit(page: Any, base: str) -> tuple[float, float]:
        began_s = time.perf_counter()
        page.goto(base + address, wait_until="commit")
        page.wait_for_selector("main .uplot canvas", state="attached", timeout=120_000)
        first_s = time.perf_counter() - began_s
        page.wait_for_selector("html.drawn", state="attached", timeout=120_000)
        return 1000 * first_s, 1000 * (time.perf_counter() - began_s)

    for _ in range(min(rounds, 3)):
        with _browser(env, folder) as (page, base):
            if page is None:
                return []
            times["new"].append(visit(page, base)[0])
    with _browser(env, folder) as (page, base):
        visit(page, base)
        for _ in range(rounds):
            first_ms, all_ms = visit(page, base)
            times["first"].append(first_ms)
            times["all"].append(all_ms)
        area = page.locator(".u-over").first
        area.scroll_into_view_if_needed()
        box = area.bounding_box()
        x, y = box["x"] + box["width"] / 4, box["y"] + box["height"] / 2
        for _ in range(rounds):
            page.mouse.move(x, y)
            page.mouse.down()
            page.mouse.move(x + box["width"] / 2, y, steps=4)
            page.evaluate(f"globalThis.zoomed = ({_NEXT_PICTURE})(); 0")
            page.mouse.up()
            times["zoom"].append(page.evaluate("zoomed"))
            page.mouse.dblclick(x, y)
    return [
        Row(what=f"{named}: {what} in Chromium", unit="ms", ours=Figures.of(*times[key]),
            budget=budget)
        for key, what, budget in (
            ("new", "first plot, report not kept,", 2000),
            ("first", "first plot, report kept,", 2000),
            ("all", "all plots, report kept,", None),
            ("zoom", "zoom", 200),
        )
    ]  # fmt: skip


@contextlib.contextmanager
def _browser(env: Mapping[str, str], folder: Path) -> Iterator[tuple[Any, str]]:
    """Start a portal and Chromium; yield a page and the address; None without a browser."""
    browser_path = next(filter(None, map(shutil.which, _BROWSERS)), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        browser_path = None
    if browser_path is None:
        yield None, ""
        return
    log = folder / "browser.log"
    with log.open("w") as output:
        process = subprocess.Popen([sys.executable, "-m", "teho", "portal", "--port", "0"],
                                   env=dict(env), stdout=output, stderr=output)  # fmt: skip
    try:
        while "token=" not in log.read_text():
            time.sleep(0.05)
        link = next(word for word in log.read_text().split() if "token=" in word)
        with sync_playwright() as running:
            browser = running.chromium.launch(
                executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"]
            )
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(link)
            yield page, link.partition("?")[0]
            browser.close()
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


def _large_run(nodes: int, days: float, rounds: int) -> list[Row]:
    say(f"a run of {nodes} nodes")
    with stub_environment() as env, tempfile.TemporaryDirectory(prefix="teho-bench-") as name:
        env["TEHO_HOME"] = str(generated(nodes, days, env))
        run = next(path.name for path in Path(env["TEHO_HOME"], "runs").iterdir())
        folder = Path(name)
        named = f"run of {nodes} nodes with 8 GPUs, {days:g} days"
        with portal(env, folder) as running:
            began_s = time.perf_counter()
            size = len(running.ask(f"/run?id={run}"))
            first_s = time.perf_counter() - began_s
            again = running.times_ms(f"/run?id={run}", rounds)
        rows = [
            Row(what=f"{named}: first time, from the server", unit="s", ours=Figures.of(first_s)),
            Row(what=f"{named}: again, from the server", unit="ms", ours=again),
            Row(what=f"{named}: size of the page", unit="MB", ours=Figures.of(size / _MB)),
        ]
        rows += _drawn(env, folder, rounds, named, f"run?id={run}")
    return rows


def _live(count: int, seconds: float) -> list[Row]:
    say(f"{count} running runs")
    with tempfile.TemporaryDirectory(prefix="teho-bench-") as name:
        folder = Path(name)
        env = environment(folder)
        home = Path(env["TEHO_HOME"])
        players = [
            subprocess.Popen(
                [sys.executable, str(_HERE / "live_recorders.py"),
                 str(home / "runs" / f"20261126-0800{number:02d}-live-{number:04d}"), "1", "8",
                 str(seconds + 300), "60", "0", "connection"],
                env=dict(env), stdout=subprocess.PIPE, text=True,
            )
            for number in range(count)
        ]  # fmt: skip
        try:
            for player in players:
                assert player.stdout
                if player.stdout.readline() != "ready\n":
                    raise RuntimeError("a player of a recorder has failed")
            with portal(env, folder) as running:
                connection = running.connect()
                shown = ",".join(path.name for path in (home / "runs").iterdir())
                connection.request("GET", f"/events?shown={shown}")
                stream = connection.getresponse()
                ages: list[float] = []
                sent: dict[str, tuple[float, float]] = {}
                judged: set[str] = set()
                used_s = began_s = 0.0
                # From the moment at which all recorders are connected and all runs are judged.
                while not began_s or time.monotonic() < began_s + seconds:
                    line = stream.readline()
                    if not line:
                        raise RuntimeError("the portal has ended the stream")
                    if not line.startswith(b"data: "):
                        continue
                    now_s = time.monotonic()
                    facts = msgspec.json.decode(line[6:], type=dict[str, dict[str, str]])
                    judged |= {run for run, one in facts.items() if "sentence" in one}
                    if not began_s and len(judged) == count:
                        used_s, began_s = tree_cpu_s(running.pid), now_s
                    for run, one in facts.items():
                        if began_s and run in sent:
                            age_s, at_s = sent[run]
                            ages.append(age_s + now_s - at_s)
                        if "age" in one:
                            sent[run] = _age_s(one["age"]), now_s
                used_s = tree_cpu_s(running.pid) - used_s
                percent = 100 * used_s / (time.monotonic() - began_s)
                connection.close()
        finally:
            for player in players:
                player.terminate()
                player.wait()
    rows = [
        Row(what=f"{count} running runs on the home page: CPU time, share of one core", unit="%",
            ours=Figures.of(percent), budget=5),
    ]  # fmt: skip
    if ages:
        rows.append(
            Row(what=f"{count} running runs: age of a value, 95 % are younger",
                unit="s", ours=Figures.of(sorted(ages)[int(0.95 * len(ages))]), budget=3)
        )  # fmt: skip
    return rows


def _age_s(text: str) -> float:
    """Read a duration such as `340 ms`, `2.4 s` or `1 min 3 s`."""
    words = text.split()
    factors = {"ms": 0.001, "s": 1.0, "min": 60.0}
    return sum(float(words[i]) * factors[words[i + 1]] for i in range(0, len(words), 2))
