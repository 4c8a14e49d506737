"""`teho.feed` with the real PyTorch."""

from __future__ import annotations

import socket
from pathlib import Path

from feed.with_torch import needs_torch, run_program
from support import SOAK, lacks_framework
from teho.feed.packing import pack

pytestmark = needs_torch
NO_ARGUMENT = (
    "teho.errors.InputError: loader has no argument num_worker; expected an argument of DataLoader"
)


def test_each_sample_is_given_once_whatever_is_killed(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for number in range(61):
        (data / f"{number:02d}.txt").write_text(str(number))
    pack(data, tmp_path / "packed", shard_bytes=10_000)
    count = 1000 if SOAK else 500
    lines = run_program("epochs", tmp_path, str(tmp_path / "packed"), str(count), "1").splitlines()
    assert lines[0].startswith(f"{count} epochs")
    assert "batch_size=64, and the feed has batch_size=32" in lines[1]


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
    frameworks = [name for name in ("jax",) if not lacks_framework(name)]
    lines = run_program("on_device", tmp_path, *frameworks).splitlines()
    assert "25 of 50 samples are there" in lines[0]
    assert lines[1].startswith("teho.feed.resident loads each batch: 18.0 KiB do not fit into")
    assert [line.partition("batch: ")[2] for line in lines[2:5]] == [
        "the samples are not the same each time. Make random changes with `transform`",
        "the samples have parts that are not numbers (str)",
        lines[4].partition("batch: ")[2],
    ]
    assert "different shapes" in lines[4]
    assert len(lines) == 10
