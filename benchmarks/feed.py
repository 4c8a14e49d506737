"""This section compares epochs with `teho.feed`, with PyTorch's DataLoader and with other loaders.

In this section, an epoch only fetches the batches, and computes nothing with them. Only in the rows
with *the network*, the program also trains this network. For each kind of data, the loaders run
alternately in one process, except that litdata runs in a separate process. The first epoch of each
loader is not counted.

In the rows with *many small files*, each `open` of a data file takes 1 ms longer than usual, as on
a slow file system. A small library (`slow_open.c`), which is loaded before the C library, adds this
delay. *hand-written* is a loader that a user could write: it shuffles the numbers of the rows with
`torch.randperm(n)`, divides these numbers into batches, and takes `x[rows], y[rows]` for the
numbers `rows` of each batch. *index_select* is the same loader with `x.index_select(0, rows)`,
which is faster than `x[rows]`. A *control* is a program that `teho.feed` cannot make faster. In a
control, `loader` and `resident` may be at most 5 % slower than the fastest DataLoader. In the row
with *the first epoch*, each epoch has a new loader. This time includes the start of the workers. It
also includes the measurement with which `loader` chooses how to load. The JPEG images have 500 ×
375 pixels. All loaders decode the images with the same function of Pillow, except that DALI uses
its own decoder on the CPU. In the rows with *time divided by the time of*, the benchmark divides
the times of two epochs that follow each other, and shows the median of these quotients. In the rows
with *CPU time*, the benchmark divides the CPU times of the process in the same way. These quotients
depend less on other programs on the machine. The loaders of such a row have no worker processes.

The last row counts faults: in each of these epochs, up to 8 ranks are interrupted up to three times
and continue with `state_dict`. The kind of data, the batch size, the number of ranks and the other
settings are random. If the samples cannot be divided between the ranks, `teho.feed` raises an
error, and the epoch does not count. The epochs are the ones of the test
`tests/feed/programs/epochs.py`.

The environment variable `TEHO_FEED_PYTHON` names the Python that runs the loaders. This Python
needs PyTorch. Some rows also need Pillow, SPDL, DALI (`nvidia-dali-cuda120`), webdataset or litdata
in this Python. If one of these packages is missing, the rows that need this package are missing
too. Without `TEHO_FEED_PYTHON`, the benchmark uses the Python that `tests/frameworks.sh` installs.
The benchmark sets `OMP_WAIT_POLICY` to `passive`. Without this setting, threads of PyTorch that
wait would take cores from the other programs on this machine.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from common import ROOT, Figures, Row, environment, say

from teho.feed import pack

_HERE = Path(__file__).parent
_PYTHON = os.environ.get("TEHO_FEED_PYTHON") or str(ROOT / ".frameworks" / "bin" / "python")
_ROUNDS = 15
_FILES, _FILE_BYTES, _OPEN_US = 50_000, 4096, 1000
_JPEGS = 600
_EPOCHS, _SEED = 1000, 1
_OF_OTHERS = ("DALI", "SPDL", "litdata", "webdataset")
_CONTROLS = {
    "python": "samples made in Python",
    "augmented": "samples changed at random",
    "sleeps": "samples that wait 2 ms",
    "tiny": "samples of 16 bytes in batches of 8",
    "stream": "a dataset with only `__iter__`",
}
_IN_MEMORY = {
    "cifar": "50,000 images uint8 [3, 32, 32] in memory, batch 512",
    "table": "100,000 rows float32 [20] in memory, batch 256",
    "small": "100,000 rows float32 [20] in memory, batch 32",
}


def measure(*, quick: bool) -> list[Row]:
    """Return the rows of all cases."""
    if not Path(_PYTHON).exists():
        say("no PyTorch in .frameworks: left out")
        return []
    rounds = 1 if quick else _ROUNDS
    with tempfile.TemporaryDirectory(prefix="teho-bench-") as name:
        folder = Path(name)
        env = _environment(folder)
        cases = list(_IN_MEMORY)[: 1 if quick else None]
        rows = [row for case in cases for row in _in_memory(case, rounds, env)]
        if quick:
            return rows
        rows += _network(rounds, env)
        rows += _small_files(folder, env)
        rows += _jpeg(folder, rounds, env)
        rows += [row for case in _CONTROLS for row in _control(case, rounds, env)]
        rows.append(_first(rounds, env))
        rows.append(_exactly_once(folder, env))
    return rows


def _environment(folder: Path) -> dict[str, str]:
    """Return an environment in which that Python has Teho, and msgspec if it lacks this."""
    library = folder / "library"
    library.mkdir()
    (library / "msgspec").symlink_to(Path(msgspec.__file__).parent)
    # PyTorch's threads wait in a loop, which takes the cores from other programs.
    passive = {"OMP_WAIT_POLICY": "passive"}
    return {**environment(folder), **passive, "PYTHONPATH": f"{ROOT / 'src'}:{library}"}


def _run(
    case: str, rounds: int, env: Mapping[str, str], folder: Path | None = None
) -> dict[str, Figures]:
    """Return the times of an epoch in s, for each loader."""
    return _with_cpu(case, rounds, env, folder)[0]


def _with_cpu(
    case: str, rounds: int, env: Mapping[str, str], folder: Path | None = None
) -> tuple[dict[str, Figures], dict[str, Figures]]:
    """Return the times and the CPU times of an epoch in s, for each loader."""
    done = subprocess.run(
        [_PYTHON, _HERE / "feed_programs.py", case, str(rounds), *([folder] if folder else [])],
        env=dict(env), stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    answer: dict[str, Any] = json.loads(done.stdout)
    found, cpu = (
        {name: Figures.of(*seconds) for name, seconds in answer[key].items()}
        for key in ("seconds", "cpu_s")
    )
    say(f"{case}: {answer['chosen']}")
    for name, seconds in found.items():
        say(f"  {name}: {seconds} s, CPU time {cpu[name]} s")
    _check_samples(case, answer["samples"])
    return found, cpu


def _check_samples(case: str, counts: Mapping[str, list[int]]) -> None:
    """Compare how many samples the epochs had: an epoch that loses samples is not faster."""
    most = max((count for own in counts.values() for count in own), default=0)
    for name, own in counts.items():
        if own != [most]:
            text = f"{case}: an epoch of {name} has {own} samples, and not {most}"
            if not name.startswith(_OF_OTHERS):
                raise RuntimeError(text)
            say(text)


def _times(ours: Figures, theirs: Figures) -> float:
    """Return how many times as long ours takes: the median of epochs that follow each other."""
    return median(one / other for one, other in zip(ours.values, theirs.values, strict=True))


def _ms(figures: Figures) -> Figures:
    return Figures.of(*(1000 * value for value in figures.values))


def _beside(what: str, ours: Figures, peer: str, theirs: Figures, most: float) -> list[Row]:
    """Return a row with both times, and one with their ratio and its budget."""
    return [
        Row(what=f"{what}, an epoch", unit="ms", ours=_ms(ours), peer=peer, theirs=_ms(theirs)),
        Row(what=f"{what}, time divided by the time of {peer}", unit="×",
            ours=Figures.of(_times(ours, theirs)), budget=most),
    ]  # fmt: skip


def _of_cpu(what: str, ours: Figures, peer: str, theirs: Figures, most: float) -> Row:
    what = f"{what}, CPU time divided by the CPU time of {peer}"
    return Row(what=what, unit="×", ours=Figures.of(_times(ours, theirs)), budget=most)


def _in_memory(case: str, rounds: int, env: Mapping[str, str]) -> list[Row]:
    found, cpu = _with_cpu(case, rounds, env)
    what = f"`resident`: {_IN_MEMORY[case]}"
    rows = _beside(what, found["resident"], "DataLoader", found["DataLoader"], 0.1)
    for peer in ("hand-written", "index_select"):
        rows += _beside(what, found["resident"], peer, found[peer], 1 / 0.95)
        rows.append(_of_cpu(what, cpu["resident"], peer, cpu[peer], 1 / 0.95))
    what = f"`loader`: {_IN_MEMORY[case]}"
    return [*rows, _beside(what, found["loader"], "DataLoader", found["DataLoader"], 0.1)[1]]


def _network(rounds: int, env: Mapping[str, str]) -> list[Row]:
    programs = ROOT / "src" / "teho" / "bench" / "programs"
    found = _run("cnn", rounds, {**env, "PYTHONPATH": f"{env['PYTHONPATH']}:{programs}"})
    peer = "DataLoader, 2 workers"
    what = "the network of `teho bench cnn`, 6,400 images, trained on the CPU"
    names = {"resident": "`resident`", "host memory": '`resident(device="cpu")`',
             "loader": "`loader`"}  # fmt: skip
    return [
        _beside(f"{code}: {what}", found[name], peer, found[peer], 1.05)[0]
        for name, code in names.items()
    ]


def _small_files(folder: Path, env: Mapping[str, str]) -> list[Row]:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        say("no C compiler: left out")
        return []
    shim = folder / "slow_open.so"
    source = _HERE / "slow_open.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", source, "-o", shim, "-ldl"], check=True)
    data = folder / "data"
    for number in range(_FILES):
        path = data / "files" / f"{number % 100:02d}" / f"{number:06d}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(_FILE_BYTES))
    slow = {"LD_PRELOAD": str(shim), "SLOW_FOLDER": str(data), "SLOW_US": str(_OPEN_US)}
    pack = [sys.executable, "-m", "teho", "pack", data / "files", data / "packed"]
    rates = []
    for _ in range(3):
        shutil.rmtree(data / "packed", ignore_errors=True)
        done = subprocess.run(
            [*pack, "--format", "json"], env={**env, **slow}, stdout=subprocess.PIPE, check=True
        )
        rates.append(_FILES / json.loads(done.stdout)["elapsed_s"])
    found = _run("small_files", 3, {**env, **slow}, data)
    found |= _run("litdata", 3, {**env, **slow}, data)
    what = "many small files (50,000 of 4 KiB, 1 ms for each `open`)"
    rows = [
        Row(what=f"`teho pack`: {what}", unit="files/s", ours=Figures.of(*rates),
            verdict="yes" if min(rates) >= 5000 else "**no**", ours_text=f"{Figures.of(*rates)}"),
    ]  # fmt: skip
    for peer in sorted(found.keys() - {"packed"}):
        most = 0.05 if peer == "DataLoader, 2 workers" else None
        pair = _beside(f"`packed`: {what}", found["packed"], peer, found[peer], most or 1.0)
        rows += pair if most else pair[:1]
    return rows


def _jpeg(folder: Path, rounds: int, env: Mapping[str, str]) -> list[Row]:
    made = subprocess.run(
        [_PYTHON, _HERE / "feed_images.py", folder / "jpegs", str(_JPEGS)], env=dict(env),
        check=False,
    )  # fmt: skip
    if made.returncode:
        say("no Pillow: left out")
        return []
    found, cpu = _with_cpu("jpeg", rounds, env, folder)
    ours = {name: found.pop(name) for name in ("loader", "loader, 2 threads")}
    rows = []
    for name, own in ours.items():
        for peer, theirs in found.items():
            pair = _beside(f"`{name}`: JPEG images", own, peer, theirs, 1.0)
            rows += pair[:1] if peer.startswith("DALI") else pair
    if "SPDL" in cpu:
        name = "loader, 2 threads"
        rows.append(_of_cpu(f"`{name}`: JPEG images", cpu[name], "SPDL", cpu["SPDL"], 1.0))
    return rows


def _control(case: str, rounds: int, env: Mapping[str, str]) -> list[Row]:
    found = _run(case, rounds, env)
    ours = {name: found.pop(name) for name in ("loader", "resident") if name in found}
    rows = []
    for name, own in ours.items():
        peer = min(found, key=lambda other: _times(found[other], own))
        what = f"control, `{name}`: {_CONTROLS[case]}, time divided by the time of {peer}"
        figures = Figures.of(_times(own, found[peer]))
        rows.append(Row(what=what, unit="×", ours=figures, budget=1.05))
    return rows


def _first(rounds: int, env: Mapping[str, str]) -> Row:
    found = _run("first", rounds, env)
    (peer,) = found.keys() - {"loader"}
    what = f"the first epoch: {_CONTROLS['python']}"
    return _beside(what, found["loader"], peer, found[peer], 1.0)[0]


def _exactly_once(folder: Path, env: Mapping[str, str]) -> Row:
    """Run the program of the test with all epochs, which counts the samples itself."""
    data, out = folder / "numbers", folder / "packed_numbers"
    data.mkdir()
    for number in range(61):
        (data / f"{number:02d}.txt").write_text(str(number))
    pack(data, out, shard_bytes=10_000)
    program = ROOT / "tests" / "feed" / "programs" / "epochs.py"
    done = subprocess.run(
        [_PYTHON, program, out, str(_EPOCHS), str(_SEED)], env=dict(env), stdout=subprocess.PIPE,
        text=True, check=False,
    )  # fmt: skip
    found = re.search(
        rf"^{_EPOCHS} epochs, .* (\d+) samples lost or seen twice$", done.stdout, re.MULTILINE
    )
    if not found:
        raise RuntimeError(f"{program} ended with {done.returncode}: {done.stdout}")
    what = (
        f"{_EPOCHS:,} random epochs on 1 to 8 ranks, interrupted and continued: samples lost or "
        "seen twice"
    )
    return Row(what=what, unit="samples", ours=Figures.of(int(found[1])), budget=0,
               ours_text=found[1])  # fmt: skip
