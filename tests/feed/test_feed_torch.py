"""`teho.feed` with the real PyTorch."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from feed.with_torch import needs_torch, run_program
from pages import ROOT
from support import FRAMEWORKS, SOAK, lacks_framework, path_of_teho
from teho.feed.packing import pack

pytestmark = needs_torch
NO_ARGUMENT = (
    "teho.errors.InputError: loader has no argument num_worker; expected an argument of DataLoader"
)


@pytest.mark.soak
def test_each_sample_is_given_once_whatever_is_killed(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for number in range(61):
        (data / f"{number:02d}.txt").write_text(str(number))
    pack(data, tmp_path / "packed", shard_bytes=10_000)
    count = 1000 if SOAK else 250
    lines = run_program("epochs", tmp_path, str(tmp_path / "packed"), str(count), "1").splitlines()
    assert lines[0].startswith(f"{count} epochs")
    assert lines[0].endswith(" 0 samples lost or seen twice")
    assert "batch_size=64, and the feed has batch_size=32" in lines[1]
    assert lines[2] == (
        "the sampler RandomSampler gives another order than in the run that saved the position; "
        "expected the same order for the same epoch. Next: use `shuffle=True` and `seed` in place "
        "of the sampler, or a sampler with `set_epoch`"
    )
    assert len(lines) == 3


def test_threads_and_processes_load_the_same(tmp_path: Path) -> None:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    lines = run_program("loaders", tmp_path, str(port), str(tmp_path)).splitlines()
    assert lines == [
        "<teho.feed loader: main (num_workers=0)>",
        "<teho.feed loader: 2 threads>",
        "<teho.feed loader: 2 processes>",
        lines[3],
        "loading uses random numbers, and each worker process has its own",
        "the dataset keeps _io.BufferedRandom open",
        NO_ARGUMENT,
        "3 ranks",
    ]
    assert lines[3].startswith("teho.errors.TehoError: a worker process of the loader was killed")


def test_data_stay_on_the_device(tmp_path: Path) -> None:
    lines = run_program("on_device", tmp_path).splitlines()
    assert "25 of 50 samples are there" in lines[0]
    assert lines[1].startswith("teho.feed.resident loads each batch: 18.0 KiB do not fit into")
    assert lines[2:6] == [
        "teho.feed.resident loads each batch: the samples need more than 168 B",
        "teho.feed.resident loads each batch: the samples need more than 168 B",
        (
            "shuffle=True with a dataset that has only __iter__ and is not in memory: the samples "
            "need more than 168 B; expected shuffle=False. Next: shuffle the samples in "
            "`__iter__`, or give a larger memory_share"
        ),
        (
            "a dataset of type map, whose samples can be read only once; expected an object whose "
            "__iter__ begins again in each epoch. Next: make a subclass of IterableDataset whose "
            "__iter__ returns such an iterator"
        ),
    ]
    assert [line.partition("batch: ")[2] for line in lines[6:9]] == [
        "the samples are not the same each time. Make random changes with `transform`",
        "the samples have parts that are not numbers (str)",
        lines[8].partition("batch: ")[2],
    ]
    assert "different shapes" in lines[8]
    assert len(lines) == 14


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=pytest.mark.skipif(bool(lacks_framework(name)), reason=lacks_framework(name)),
        )
        for name in ("jax", "tensorflow")
    ],
)
@pytest.mark.soak
def test_arrays_of_other_frameworks(tmp_path: Path, name: str) -> None:
    if name == "tensorflow" and not SOAK:
        pytest.skip("TensorFlow takes seconds to import: it runs only in `make soak`")
    run_program("frameworks", tmp_path, name)


def test_webdataset_reads_the_shards(tmp_path: Path) -> None:
    if missing := lacks_framework("webdataset"):
        pytest.skip(missing)
    data = tmp_path / "data"
    (data / "a").mkdir(parents=True)
    for number in range(300):
        (data / "a" / f"{number:03d}.cls").write_text(str(number))
        (data / "a" / f"{number:03d}.seg.bin").write_bytes(bytes([number % 256]) * number)
    pack(data, tmp_path / "packed", shard_bytes=100_000)
    assert len(list((tmp_path / "packed").glob("*.tar"))) > 3
    run_program("web_dataset", tmp_path, str(tmp_path / "packed"))


def test_the_change_in_the_lesson_works(tmp_path: Path) -> None:
    lesson = (ROOT / "docs" / "learn" / "feeding.md").read_text()
    (change,) = re.findall(r"```diff\n(.*?)```", lesson, re.DOTALL)
    old, new = ("".join(re.findall(rf"^\{sign}(.*\n)", change, re.MULTILINE)) for sign in "-+")
    program = (ROOT / "examples" / "feed_digits.py").read_text()
    assert program.count(old.rstrip("\n")) == 1
    program = program.replace(old.rstrip("\n"), new.rstrip("\n"))
    program = program.replace("import torch\n", "import torch\nfrom teho.feed import resident\n", 1)
    shutil.copytree(ROOT / "examples" / "data", tmp_path / "data")
    changed = tmp_path / "changed.py"
    # Each epoch has 57 steps, as with the data loader.
    changed.write_text(program.replace("in loader:", "in loader:\n            print(len(loader))"))
    done = subprocess.run(
        [FRAMEWORKS / "bin" / "python", changed, "--epochs", "2"],
        env={**os.environ, "PYTHONPATH": path_of_teho(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    *steps, loss = done.stdout.splitlines()
    assert steps == ["57"] * 114
    assert 0 < float(loss.removeprefix("loss ")) < 1.5
    assert done.stderr == ""
