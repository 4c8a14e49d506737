"""`teho tune` with real programs, from the command line to the verdict."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from support import SOAK, TEHO, WITHOUT_COMPILER, path_of_teho
from teho.model.tuned import Tuned
from teho.show.json.noun import schema_of

STARVED = """\
import time
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Images(Dataset):
    def __len__(self):
        return 320
    def __getitem__(self, index):
        time.sleep(0.005)  # a file that lies far away
        return torch.randn(3, 16, 16), index % 10

def main():
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(1568, 10))
    loader = DataLoader(Images(), batch_size=8)
    while True:
        for images, labels in loader:
            nn.functional.cross_entropy(model(images), labels).backward()
            time.sleep(0.05)  # a larger model: two workers cannot be better than one
            for weights in model.parameters():  # an optimizer imports PyTorch's compiler: 2 s
                weights.data -= 0.01 * weights.grad
                weights.grad = None

main()
"""
MADE_AT = STARVED[: STARVED.index("loader =")].count("\n") + 1
BUSY = WITHOUT_COMPILER + (
    STARVED.replace("time.sleep(0.005)", "0")
    .replace("time.sleep(0.05)", "0")
    .replace("loader =", "optimizer = torch.optim.SGD(model.parameters())\n    loader =", 1)
    .replace("for weights", "optimizer.step(); sum(range(10**6))\n            for weights")
)
ARRAYS = """\
import sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

def main(epochs):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    inputs = torch.randn(20_000, 16)
    labels = inputs[:, 0] > 0
    model = nn.Linear(16, 2)
    loader = DataLoader(
        TensorDataset(inputs, labels.long()),
        batch_size=100,
        shuffle=True,
    )
    for epoch in range(epochs):
        losses = []
        for rows, targets in loader:
            loss = nn.functional.cross_entropy(model(rows), targets)
            loss.backward()
            losses.append(loss.detach())
            for weights in model.parameters():
                weights.data -= 0.1 * weights.grad
                weights.grad = None
        loss = torch.stack(losses).sum().item() * loader.batch_size / len(loader.dataset)
        print(len(losses), loss)

main(int(sys.argv[1]))
"""
STEPS = """\
import sys, time
import teho

for _ in range(int(sys.argv[1])):
    time.sleep(0.01)
    teho.step()
"""


def tune(*words: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*TEHO, "tune", *map(str, words)], cwd=cwd,
        capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip


def written(folder: Path, text: str) -> Path:
    path = folder / "train.py"
    path.write_text(text)
    return path


def found(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    answer = json.loads(done.stdout)
    jsonschema.validate(answer, schema_of(Tuned))
    return answer


def test_a_starved_training_is_fed_and_it_is_proved(torch_python: Path, tmp_path: Path) -> None:
    script = written(tmp_path, STARVED)
    done = tune(
        "--for", "5min", "--window", "1500ms", "-o", f"{script}.tuned.json",
        "--", torch_python, script,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answer = json.loads(Path(f"{script}.tuned.json").read_text())
    jsonschema.validate(answer, schema_of(Tuned))
    assert answer["outcome"] == "gain", answer
    assert answer["settings"]["num_workers"] in {1, 2}
    assert answer["gain"]["low"] > 1
    (change,) = answer["changes"]
    assert (change["file"], change["line"]) == (str(script), MADE_AT)
    assert change["text"].endswith("DataLoader(Images(), batch_size=8)")
    # How much of the ideal gain that is, benchmarks/tune.py measures.
    # The file beside the program is what `loader` reads.
    workers = answer["settings"]["num_workers"]
    made = STARVED[: STARVED.index("    while True")].replace("DataLoader(", "teho.feed.loader(")
    written(tmp_path, f"{made}    print(loader.choice)\nimport teho.feed\nmain()\n")
    env = {**os.environ, "PYTHONPATH": path_of_teho(tmp_path)}
    chosen = subprocess.run(
        [torch_python, script], env=env, capture_output=True, text=True, timeout=100, check=True
    )
    assert chosen.stdout == (
        f"Choice(kind='processes', workers={workers}, why='proved by `teho tune`')\n"
    )


@pytest.mark.soak
@pytest.mark.skipif(not SOAK, reason="it takes up to 4 min: TEHO_SOAK=1")
def test_arrays_in_memory_are_fed_and_the_advice_is_the_line_to_change(
    torch_python: Path, tmp_path: Path
) -> None:
    script = written(tmp_path, ARRAYS)
    done = tune(
        "--allow", "feed", "--for", "5min", "--window", "1500ms", "--format", "json",
        "--", torch_python, script, "1000000",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answer = found(done)
    assert (answer["outcome"], answer["settings"]) == ("gain", {"feed": True}), answer
    assert answer["gain"]["low"] > 1
    (change,) = answer["changes"]
    call = ARRAYS[ARRAYS.index("DataLoader(\n") : ARRAYS.index("    for epoch")].strip()
    made_at = ARRAYS[: ARRAYS.index(call)].count("\n") + 1
    assert (change["file"], change["line"]) == (str(script), made_at)
    assert change["set_to"] == (
        "resident(TensorDataset(inputs, labels.long()), batch_size=100, shuffle=True)"
    )
    # The changed program trains as the program did.
    changed = f"from teho.feed import resident\n{ARRAYS.replace(call, change['set_to'])}"
    plain, own = (
        subprocess.run(
            [torch_python, written(tmp_path, text), "3"],
            env={**os.environ, "PYTHONPATH": path_of_teho(tmp_path)},
            capture_output=True, text=True, timeout=100, check=True,
        ).stdout.splitlines()
        for text in (ARRAYS, changed)
    )  # fmt: skip
    assert [line.split()[0] for line in own] == [line.split()[0] for line in plain] == ["200"] * 3
    assert float(own[-1].split()[1]) == pytest.approx(float(plain[-1].split()[1]), rel=0.1)


def test_a_training_that_only_computes_has_no_gain(torch_python: Path, tmp_path: Path) -> None:
    done = tune("--window", "1s", "--", torch_python, written(tmp_path, BUSY), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("i N")
    assert "so loader settings" in done.stdout
    assert "times as fast" not in done.stdout
    assert "several times" in done.stderr


def test_a_program_may_report_its_steps_itself(tmp_path: Path) -> None:
    script = written(tmp_path, STEPS)
    done = tune(
        "--for", "30s", "--window", "1s", "--format", "json", "--", sys.executable, script, "100000"
    )
    assert done.returncode == 0, done.stderr
    answer = found(done)
    assert answer["unit"] == "step"
    assert answer["outcome"] == "no_gain"
    assert "No PyTorch DataLoader" in answer["notes"][0]
    assert 20 < answer["trials"][0]["steps_per_s"] < 101


def test_a_program_that_ends_early_is_measured_as_far_as_it_came(tmp_path: Path) -> None:
    script = written(tmp_path, STEPS)
    done = tune("--for", "60s", "--window", "20s", "--", sys.executable, script, "60")
    assert done.returncode == 0, done.stderr
    assert "unchanged" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--for", "60s", "--", "sh", "-c", "echo a >&2; echo b >&2; exit 3"],
         "the run ended with exit code 3 after"),
        (["--for", "60s", "--", "sh", "-c", "echo a >&2; echo b >&2; exit 3"], "it wrote: a | b"),
        (["--for", "1s", "--window", "600ms", "--", "sleep", "100"],
         "no Python process loaded Teho's probe within 1"),
        (["--", sys.executable, "-c", "pass"], "was seen before the program ended"),
        (["--", sys.executable, "-c", "pass"], "call `teho.step()`"),
        (["--", "no-such-program"], "no-such-program: No such file or directory"),
        (["--allow", "batchsize", "--", "true"], "did you mean 'batch-size'"),
        (["--for", "5s", "--window", "5s", "--", "true"], "--window 5s is not shorter than"),
        (["--for", "soon", "--", "true"], "--for: 'soon' is not a length of time"),
        ([], "Missing argument"),
    ],
)  # fmt: skip
def test_what_cannot_be_measured_is_refused_in_one_line(words: list[str], said: str) -> None:
    done = tune(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert said in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_a_program_of_too_few_steps_is_refused(tmp_path: Path) -> None:
    done = tune("--", sys.executable, written(tmp_path, STEPS), "5")
    assert done.returncode == 2
    assert "steady steps were seen before the program ended; expected 10 or more" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_early_end_ends_all_processes(tmp_path: Path, number: int) -> None:
    # One child in a session of its own; the program itself does not heed SIGTERM.
    script = written(
        tmp_path,
        "import pathlib, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen(['sleep', '1000'], start_new_session=True)\n"
        "pathlib.Path(sys.argv[1]).write_text(str(child.pid))\n"
        "time.sleep(1000)\n",
    )
    mark = tmp_path / "pid"
    with subprocess.Popen(
        [*TEHO, "tune", "--", sys.executable, script, mark], stderr=subprocess.PIPE, text=True
    ) as tuning:
        until_s = time.monotonic() + 60
        while not (mark.exists() and mark.read_text()) and time.monotonic() < until_s:
            time.sleep(0.05)
        child = int(mark.read_text())
        tuning.send_signal(number)
        _, errors = tuning.communicate(timeout=60)
    assert tuning.returncode == 128 + number
    assert "Traceback" not in errors
    state = Path(f"/proc/{child}/stat")
    assert not state.exists() or ") Z " in state.read_text()
