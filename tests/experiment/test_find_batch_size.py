"""`teho tune --find batch-size` with real programs, whose memory runs out."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jsonschema
import nvml_stub
import pytest
from nvml_stub import Scenario

from memory_group import memory_group
from support import TEHO
from teho.model.batch_sizes import BatchSizes
from teho.show.json.noun import schema_of

MIB = 1024**2
PROGRAM = """\
import os
import sys
import time
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

OWN, ROOM, FAILS, MIB_PER_SAMPLE = map(int, sys.argv[1:5])

class Images(Dataset):
    def __len__(self):
        return 4096
    def __getitem__(self, index):
        return torch.ones(64), index % 10

def main():
    torch.set_num_threads(1)
    model = nn.Linear(64, 10)
    loader = DataLoader(Images(), batch_size=OWN)
    kept = torch.empty(0)
    while True:
        for images, labels in loader:
            count = len(images)
            if count == FAILS:
                raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")
            if count > ROOM:  # as on a GPU
                raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.")
            if "GPU_PROCESSES" in os.environ:
                whole = f"{os.environ['GPU_PROCESSES']}.{os.getpid()}"
                with open(whole, "w") as listed:
                    listed.write(f"{os.getpid()} {count * MIB_PER_SAMPLE}")
                os.replace(whole, os.environ["GPU_PROCESSES"])  # a reader never sees a part
            elif count > len(kept):  # to write it again at each step would only take time
                kept = torch.ones(count, MIB_PER_SAMPLE << 18)
            time.sleep(0.05)
            nn.functional.cross_entropy(model(images), labels).backward()
            for weights in model.parameters():  # an optimizer imports PyTorch's compiler: 2 s
                weights.data -= 0.01 * weights.grad
                weights.grad = None

main()
"""
LINE = PROGRAM[: PROGRAM.index("loader =")].count("\n") + 1
ENDINGS = pytest.mark.drawn(2, tests="endings")
"""Each of these searches starts PyTorch three to seven times."""
ENDLESS = 10**6


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    return path


def find(
    *words: str | Path | int, env: Mapping[str, str] = MappingProxyType({})
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*TEHO, "tune", "--find", "batch-size", "--for", "4min", "--window", "500ms",
         "--format", "json", "--", *map(str, words)],
        env={**os.environ, **env}, capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip


def found(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    jsonschema.validate(answer, schema_of(BatchSizes))
    return answer


def endings(answer: dict[str, Any]) -> dict[int, str]:
    return {one["batch_size"]: one["ended"] for one in answer["tries"]}


@ENDINGS
def test_a_limit_of_the_process_is_found(torch_python: Path, script: Path) -> None:
    if shutil.which("prlimit") is None:
        pytest.skip("no prlimit (util-linux)")
    limit = 1200 * MIB
    # The previous batch is freed only after the next one is allocated.
    answer = found(find("prlimit", f"--data={limit}", torch_python, script, 16, ENDLESS, 0, 16))
    ended = endings(answer)
    assert (ended[16], ended[32]) == ("fits", "fits")
    assert answer["ended_by"] == "memory"
    largest, failed = answer["largest"], min(one for one in ended if ended[one] != "fits")
    assert 32 <= largest < failed <= 128
    assert failed - largest <= max(1, largest / 8)
    by_size = {one["batch_size"]: one for one in answer["tries"]}
    assert "allocate" in by_size[failed]["why"]
    assert by_size[largest]["memory"]["process_limit_bytes"] == limit
    assert largest * 16 * MIB < by_size[largest]["memory"]["host_bytes"] < 1.1 * limit
    assert "each process may use 1.17 GiB" in answer["verdict"]
    change = answer["changes"][-1]
    assert (change["file"], change["line"]) == (str(script), LINE)
    assert change["text"].endswith("DataLoader(Images(), batch_size=OWN)")
    assert change["set_to"] == f"batch_size={largest}"
    assert script.read_text() == PROGRAM


@ENDINGS
def test_a_gpus_error_ends_the_search_upwards_and_downwards(
    torch_python: Path, script: Path, nvml_library: Path, tmp_path: Path
) -> None:
    listed = tmp_path / "processes"
    listed.write_text("")
    # One GPU of which all programs use 1000 MiB.
    scenario = Scenario(("gpus 1", "0 0 50 1000 300 1500 50 0", f"processes 0 file {listed}"))
    gpu = nvml_stub.environment(nvml_library, scenario.write(tmp_path / "scenario.txt"))
    env = {**gpu, "GPU_PROCESSES": str(listed)}
    answer = found(find(torch_python, script, 4, 3, 0, 64, env=env))
    assert endings(answer) == {4: "out_of_memory", 2: "fits", 3: "fits"}
    assert (answer["own"], answer["largest"], answer["ended_by"]) == (4, 3, "memory")
    rates = {one["batch_size"]: one["samples_per_s"] for one in answer["tries"]}
    assert rates[4] is None
    assert rates[3] > 1.15 * rates[2]  # the time of a step hardly grows with the batch
    assert answer["fastest"] == 3
    memory = {one["batch_size"]: one["memory"] for one in answer["tries"]}
    assert [memory[size]["gpu_bytes"] for size in (2, 3, 4)] == [128 * MIB, 192 * MIB, None]
    assert memory[3]["gpu_used_bytes"] == 1000 * MIB
    assert memory[3]["gpu_total_bytes"] > 1000 * MIB
    assert "The largest batch that fits is 3 (192 MiB of " in answer["verdict"]
    assert " GPU memory), and this batch was the fastest in single runs: " in answer["verdict"]
    why = answer["tries"][0]["why"]
    assert "OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB." in why


@ENDINGS
def test_another_failure_ends_the_search(torch_python: Path, script: Path) -> None:
    answer = found(find(torch_python, script, 4, ENDLESS, 8, 1))
    assert endings(answer) == {4: "fits", 8: "failed"}
    assert answer["ended_by"] == "failed"
    assert "8 failed, but not because of memory" in answer["verdict"]
    assert answer["tries"][1]["why"] == (
        "the run ended with exit code 1, and its last message was “RuntimeError: mat1 and mat2 "
        "shapes cannot be multiplied”"
    )


@ENDINGS
def test_the_kernel_ends_the_search(torch_python: Path, script: Path) -> None:
    with memory_group(700 * MIB) as members:
        enter = ["sh", "-c", f'echo $$ > {members}; exec "$@"', "sh"]
        answer = found(find(*enter, torch_python, script, 1, ENDLESS, 0, 150))
    ended = endings(answer)
    assert ended[1] == "fits"
    assert "out_of_memory" in ended.values()
    assert answer["largest"] < 5
    whys = {one["why"] for one in answer["tries"] if one["ended"] == "out_of_memory"}
    assert whys == {"the operating system killed a process because memory ran out"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--find", "batchsize", "--", "true"], "--find batchsize, did you mean 'batch-size'?"),
        (["--find", "batch-size", "--allow", "tf32", "--", "true"],
         "--find batch-size cannot be used together with --allow tf32; expected only one"),
        (["--find", "batch-size", "--", "python3", "-c", "raise SystemExit(3)"],
         "the run ended with exit code 3 after"),
        (
            ["--find", "batch-size", "--", "sh", "-c", "exit 0"],
            "no Python process loaded Teho's probe",
        ),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(words: list[str], said: str) -> None:
    done = subprocess.run(
        [*TEHO, "tune", *words], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert said in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_a_program_without_a_loader_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "steps.py"
    script.write_text(
        "import time, teho\nfor _ in range(100):\n    time.sleep(0.02)\n    teho.step()\n"
    )
    done = find(TEHO[0], script)
    assert done.returncode == 2
    assert "no PyTorch DataLoader was seen in the program; expected" in done.stderr
    assert "`teho run -- COMMAND`" in done.stderr
