"""The collective: through a real torch where there is one, through a stub what needs GPUs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from check_step import Step, results

STUBS = Path(__file__).parent / "check_stubs"
AMID = """
import os, signal, sys, threading, time
def act():
    while True:
        dist = sys.modules.get("torch.distributed")
        if getattr(dist, "is_initialized", None) and dist.is_initialized():
            os.kill(os.getpid(), {signal})
        time.sleep(0.01)
if os.environ["RANK"] == "1":
    threading.Thread(target=act, daemon=True).start()
"""
"""As a sitecustomize.py: what happens to rank 1 once it is in the process group."""


@pytest.fixture
def step() -> Iterator[Callable[..., Step]]:
    made: list[Step] = []

    def make(size: int, *arguments: str, **options: object) -> Step:
        made.append(Step(size, *arguments, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_all_reduce_through_torch(step, torch_python: Path):
    some = step(4, "--json", "--seconds", "0.2", python=(str(torch_python),))
    (code, output, errors), *others = results(some.start_all())
    found = json.loads(output)
    assert (code, errors, found["findings"]) == (0, "", [])
    assert others == [(0, "", "")] * 3
    assert found["backend"] == "gloo"
    assert found["all_reduce"][0]["size_bytes"] == 1 << 20
    for one in found["all_reduce"]:
        algorithm = one["algorithm_bytes_per_s"]
        assert algorithm == pytest.approx(one["size_bytes"] / one["elapsed_s"])
        assert one["bus_bytes_per_s"] == pytest.approx(algorithm * 1.5)
    work = [one["device_work_s"] for one in found["ranks"]]
    assert found["slowest_rank"] == work.index(max(work))
    assert {one["device"] for one in found["ranks"]} == {"CPU"}
    assert all(one["waited_s"] > 0 for one in found["ranks"])


def test_a_rank_without_torch(step, torch_python: Path, tmp_path: Path):
    (tmp_path / "torch.py").write_text("raise ImportError('libcudart.so.12: not found')")
    some = step(2, "--seconds", "0.2", python=(str(torch_python),))
    ranks = [some.start(0), some.start(1, {"PYTHONPATH": str(tmp_path)})]
    (code, output, _), _ = results(ranks)
    assert code == 1
    assert output.startswith(
        "torch cannot be imported by rank 1 on r01g02: libcudart.so.12: not found.\n"
    )
    assert "No collective was tested: some ranks cannot import torch.\n" in output
    assert "all 2 links of the ring in use" in output


def test_a_rank_that_is_killed_in_the_collective(step, torch_python: Path, tmp_path: Path):
    (tmp_path / "sitecustomize.py").write_text(AMID.format(signal="signal.SIGKILL"))
    some = step(2, "--seconds", "0.2", python=(str(torch_python),), path=[tmp_path])
    (code, output, _), other = results(some.start_all())
    assert code == 1
    assert output.startswith("rank 1 on r01g02 failed in ")
    assert "over gloo: its torch process was killed by SIGKILL.\n" in output
    assert other == (0, "", "")


def test_a_collective_that_hangs(step, torch_python: Path, tmp_path: Path):
    (tmp_path / "sitecustomize.py").write_text(AMID.format(signal="signal.SIGSTOP"))
    arguments = ("--seconds", "0.2", "--timeout", "10")
    some = step(2, *arguments, python=(str(torch_python),), path=[tmp_path])
    (code, output, _), other = results(some.start_all())
    assert code == 1
    first = output.splitlines()[0]
    assert first.startswith(("no rank had finished ", "rank 1 on r01g02 had not finished "))
    assert first.endswith(" over gloo after 10 s.")
    assert other == (0, "", "")


def gpus(step, names: list[str], *arguments: str, **changes: str):
    """Run a step of stubs whose ranks see these GPUs; return exit code and output."""
    some = step(len(names), "--seconds", "0.1", *arguments, path=[STUBS])
    ranks = [some.start(rank, {**changes, "STUB_GPUS": seen}) for rank, seen in enumerate(names)]
    (code, output, errors), *others = results(ranks)
    assert errors == ""
    assert others == [(0, "", "")] * (len(names) - 1)
    return code, output


def test_nccl_where_each_rank_has_a_gpu(step):
    code, output = gpus(step, ["a,b", "a,b"])
    assert code == 0
    assert "\nr01g01  0      " in output
    assert "  A GPU 9000  " in output
    assert "all_reduce through torch 2.9.1, NCCL:\n" in output


def test_rccl_has_its_name(step):
    _, output = gpus(step, ["a", "a"], STUB_HIP="6.4")
    assert "all_reduce through torch 2.9.1, RCCL:\n" in output


def test_two_ranks_on_one_gpu(step):
    code, output = gpus(step, ["a", "a", "b,c", "b,c"])
    assert code == 1
    assert output.startswith("ranks 0–1 on r01g01 share one GPU (a).\n")
    assert "all_reduce through torch 2.9.1, gloo:\n" in output


def test_a_rank_without_a_gpu(step):
    code, output = gpus(step, ["a,b", "a,b", "a,b", ""])
    assert code == 1
    assert output.startswith("rank 3 on r01g02 sees no GPU, but other ranks see a GPU.\n")


def test_a_wrong_sum(step):
    code, output = gpus(step, ["a", "a"], STUB_WRONG="2.5")
    assert code == 1
    assert output.startswith(
        "all_reduce of 1 MiB over nccl gave a wrong sum on rank 0 on r01g01 and rank 1 on r01g02: "
        "2.5 on rank 0 instead of 3.0.\n"
    )


def test_versions_that_differ(step):
    some = step(2, "--seconds", "0.1", path=[STUBS])
    ranks = [some.start(rank, {"STUB_TORCH": f"2.{rank}"}) for rank in range(2)]
    (code, output, _), _ = results(ranks)
    assert code == 1
    assert output.startswith(
        "the ranks have different versions of torch: 2.0 on rank 0 on r01g01, "
        "2.1 on rank 1 on r01g02.\n"
    )


def test_a_torch_without_gloo(step):
    code, output = gpus(step, ["", ""], STUB_NO_GLOO="1")
    assert code == 0
    assert "No collective was tested: this torch was built without gloo.\n" in output
