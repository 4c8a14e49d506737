"""This section compares the recorder with two similar tools: each takes one sample per second.

Teho, nvitop and codecarbon run at the same time, in separate processes. The benchmark measures
their CPU time in several time windows. Teho runs as `teho run -- sleep`. nvitop and codecarbon only
collect values, and write no files. The kernel reports the CPU time of each process in nanoseconds.

When a tool starts, the tool needs additional CPU time. The row *CPU time of the start* shows this
additional CPU time. The benchmark measures how much CPU time a tool uses in the first seconds of
the run, and how much the tool uses in an equally long time later in the run. The additional CPU
time is the difference between these two CPU times. The row *CPU time of a whole* `teho run` shows
the CPU time of all processes from the start to the end. So this row includes the time for finishing
the recording, the report, and the supervisor (the process that waits for the program).

Several processes can share a page of memory. The *proportional set size* (PSS) divides a shared
page among these processes. So if you add the PSS of several processes, each page counts only once.
The *resident set size* counts a shared page fully in each process. Some rows compare the memory of
Teho with the memory of nvitop or codecarbon. These rows show the memory in the first minutes of a
run. The rows with *a run of 900 samples* show the highest memory during a run with 900 samples.

A signal is one quantity of one device, for example the power of one GPU. We counted the signals of
nvitop in the output of nvitop, and the signals of codecarbon in the source code of codecarbon.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from common import SCRIPTS, Ended, Figures, Row, installed, measure_process, say, stub_environment

_GPUS = 8
_HERE = Path(__file__).parent
_PEERS = ("nvitop", "codecarbon")
_MB = 1e6


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process, threads included, as clock_getcpuclockid(3) gives it."""
    return time.clock_gettime(~pid << 3 | 2)


def memory_bytes(pid: int) -> dict[str, int]:
    """Return sizes in bytes: proportional (`Pss`), resident (`Rss`), peak resident (`VmHWM`)."""
    found = {}
    for file, key in (("smaps_rollup", "Pss"), ("smaps_rollup", "Rss"), ("status", "VmHWM")):
        lines = Path(f"/proc/{pid}/{file}").read_text().splitlines()
        line = next(line for line in lines if line.startswith(f"{key}:"))
        found[key] = int(line.split()[1]) * 1024
    return found


@contextmanager
def running(argv: Sequence[str], env: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        argv, env=dict(env), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate()


def recorder_pid(home: Path) -> int:
    """Wait for the recorder of the only run in a home, and return its pid."""
    import msgspec

    while True:
        for path in home.glob("runs/*/nodes/*.json"):
            return int(msgspec.json.decode(path.read_bytes())["recorder_pid"])
        time.sleep(0.05)


def signals_recorded(env: Mapping[str, str]) -> int:
    """Count the quantities that have values in the only recording of a home."""
    count = subprocess.run(
        [sys.executable, str(_HERE / "values.py"), "--signals", env["TEHO_HOME"]],
        env=dict(env),
        capture_output=True,
        text=True,
        check=True,
    )
    return int(count.stdout)


def measure(*, quick: bool) -> list[Row]:
    warm_s, window_s, windows = (0.5, 0.5, 2) if quick else (10.0, 30.0, 6)
    with stub_environment() as env:
        figures, memory, signals = side_by_side(env, warm_s, window_s, windows)
    whole = _whole_run("1s", 1 if quick else 30)
    # As many samples as a run of a quarter of an hour takes: the journal has its stream packed
    # in the midst of it.
    recorder_bytes, largest_bytes = _peaks("100ms", 1 if quick else 90)
    percent, start_s = figures
    peers = [name for name in _PEERS if name in percent] or [""]
    a_signal_us = {
        name: Figures.of(*(value * 1e4 / signals[name].median for value in percent[name].values))
        for name in percent
    }
    rows = [
        Row(
            what="CPU time of the recorder after its start, share of one core",
            unit="%",
            ours=percent["teho"],
            peer=peer,
            theirs=percent.get(peer),
            budget=0.3,
            below_peer=peer == "nvitop",
        )
        for peer in peers
    ]
    for what, unit, figures, budget in (
        ("signals in each sample", "", signals, None),
        ("CPU time per signal after the start", "µs", a_signal_us, None),
        ("CPU time of the start", "s", start_s, None),
        ("memory use, as proportional set size (PSS)", "MB", memory["Pss"], 80),
        ("memory use, highest resident set size", "MB", memory["VmHWM"], 80),
    ):
        rows += [
            Row(
                what=what,
                unit=unit,
                ours=figures["teho"],
                peer=peer,
                theirs=figures.get(peer),
                budget=budget,
            )
            for peer in peers
        ]
    both = memory["both"]["teho"]
    rows.append(
        Row(
            what="memory use (PSS) of the recorder and the supervisor together",
            unit="MB",
            ours=both,
        )
    )
    rows.append(
        Row(
            what="CPU time of a whole `teho run -- sleep 30`, including start and report",
            unit="s",
            ours=Figures.of(whole.cpu_s),
        )
    )
    rows += [
        Row(
            what="recorder in a run of 900 samples: highest resident set size",
            unit="MB",
            ours=Figures.of(recorder_bytes / _MB),
            budget=80,
        ),
        Row(
            what="largest process in a run of 900 samples: highest resident set size",
            unit="MB",
            ours=Figures.of(largest_bytes / _MB),
        ),
    ]
    return rows


def _whole_run(every: str, seconds: int) -> Ended:
    say(f"a whole teho run --every {every} -- sleep {seconds}")
    argv = [SCRIPTS / "teho", "run", "--every", every, "--", "sleep", str(seconds)]
    with stub_environment() as env:
        return measure_process(argv, env)


def _peaks(every: str, seconds: int) -> tuple[int, int]:
    """Record `sleep`; return the peak resident bytes of the recorder and of the largest process."""
    say(f"memory of teho run --every {every} -- sleep {seconds}")
    argv = [str(SCRIPTS / "teho"), "run", "--every", every, "--", "sleep", str(seconds)]
    recorder_bytes = 0
    with stub_environment() as env:
        process = subprocess.Popen(argv, env=dict(env), stdout=subprocess.DEVNULL)
        pid = recorder_pid(Path(env["TEHO_HOME"]))
        while True:
            try:
                recorder_bytes = memory_bytes(pid)["VmHWM"]
            except (OSError, StopIteration):
                break
            time.sleep(0.02)
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
    return recorder_bytes, usage.ru_maxrss * 1024


def side_by_side(
    env: Mapping[str, str],
    warm_s: float,
    window_s: float,
    windows: int,
    *,
    gpus: int = _GPUS,
    peers: Sequence[str] = _PEERS,
) -> tuple[
    tuple[dict[str, Figures], dict[str, Figures]],
    dict[str, dict[str, Figures]],
    dict[str, Figures],
]:
    """Run all tools at the same time; return ((CPU %, start-up s), memory in MB, signals)."""
    from contextlib import ExitStack

    signals: dict[str, Figures] = {}
    teho = [str(SCRIPTS / "teho"), "run", "--quiet", "--", "sleep", "86400"]
    with ExitStack() as stack:
        supervisor = stack.enter_context(running(teho, env))
        processes = {
            name: stack.enter_context(
                running([sys.executable, str(_HERE / f"peer_{name}.py")], env)
            )
            for name in peers
            if installed(name)
        }
        pids = {"teho": recorder_pid(Path(env["TEHO_HOME"]))}
        for name, process in processes.items():
            assert process.stdout is not None
            seen, count = map(int, (process.stdout.readline() or "0 0").split())
            if seen != gpus:
                raise RuntimeError(f"{name} sees {seen} of the {gpus} GPUs")
            pids[name] = process.pid
            signals[name] = Figures.of(count)
        time.sleep(warm_s)
        moments, used = [time.monotonic()], [{name: cpu_s(pid) for name, pid in pids.items()}]
        for window in range(windows):
            say(f"window {window + 1} of {windows}, {window_s:g} s")
            time.sleep(window_s)
            moments.append(time.monotonic())
            used.append({name: cpu_s(pid) for name, pid in pids.items()})
        memory = {name: memory_bytes(pid) for name, pid in pids.items()}
        both = memory["teho"]["Pss"] + memory_bytes(supervisor.pid)["Pss"]
        age_s = {name: moments[0] - _born_s(pid) for name, pid in pids.items()}
    signals["teho"] = Figures.of(signals_recorded(env))
    percent = {
        name: Figures.of(
            *(
                100 * (used[i + 1][name] - used[i][name]) / (moments[i + 1] - moments[i])
                for i in range(windows)
            )
        )
        for name in pids
    }
    start_s = {
        name: Figures.of(used[0][name] - percent[name].median / 100 * age_s[name]) for name in pids
    }
    sizes = {
        key: {name: Figures.of(memory[name][key] / _MB) for name in pids}
        for key in ("Pss", "VmHWM")
    }
    return (percent, start_s), {**sizes, "both": {"teho": Figures.of(both / _MB)}}, signals


def _born_s(pid: int) -> float:
    """Return the monotonic time at which a process began."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")
