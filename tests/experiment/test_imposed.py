"""Settings reach an unmodified PyTorch program, at the loader that is meant."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from teho.observe.spool import with_probe

PROGRAM = """\
import json, os, pickle, sys
import torch
from torch.utils.data import DataLoader, Dataset

class Numbers(Dataset):
    classes = ("even", "odd")
    loaded = 0
    def __len__(self):
        return 64
    def __getitem__(self, index):
        Numbers.loaded += 1
        noise = torch.randn(()) if "--random" in sys.argv else 0
        return torch.full((3, 4, 4), float(index)) + noise, index % 2

def shown(loader):
    names = ("batch_size", "num_workers", "prefetch_factor", "persistent_workers", "pin_memory")
    return {name: getattr(loader, name) for name in names}

class Own(DataLoader):
    def __init__(self, dataset, **more):
        super().__init__(dataset, 8, True, **more)

if __name__ == "__main__":
    torch.manual_seed(0)
    first = DataLoader(Numbers(), 8, shuffle=True)
    second = Own(Numbers(), timeout=0)
    found = {"first": shown(first), "second": shown(second), "classes": first.dataset.classes}
    Numbers.loaded = 0
    found["sums"] = sorted(int(labels.sum()) for _, labels in first)
    found["loaded"] = Numbers.loaded
    pickle.loads(pickle.dumps(first.dataset))
    if "--data" in sys.argv:  # an optimizer imports PyTorch's compiler: a second of a core
        print(json.dumps(found))
        sys.exit()
    layers = torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.Linear(16, 2)
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    result = model(torch.ones(2, 3, 4, 4))
    result.float().sum().backward()
    optimizer.step()
    found["dtype"] = str(result.dtype)
    found["laid_out"] = model[0].weight.is_contiguous(memory_format=torch.channels_last)
    found["threads"] = torch.get_num_threads()
    print(json.dumps(found))
"""
FIRST = PROGRAM[: PROGRAM.index("first =")].count("\n") + 1


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "numbers_.py"
    path.write_text(PROGRAM)
    return path


def found(
    torch_python: Path, script: Path, settings: dict[str, Any], *words: str
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return what the program saw, and the probe's lines."""
    spool = script.parent / "spool" / "probe"
    done = subprocess.run(
        [torch_python, str(script), *words],
        env={**with_probe(os.environ, str(spool)), "TEHO_TUNE": json.dumps(settings)},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = [line for path in spool.iterdir() for line in path.read_text().splitlines()]
    return json.loads(done.stdout), [json.loads(line) for line in lines]


def test_loaders_and_models_are_as_wanted(torch_python: Path, script: Path) -> None:
    wanted = {
        "num_workers": 2, "prefetch_factor": 4, "persistent_workers": True, "batch_size": 16,
        "threads": 1, "autocast": "bfloat16", "channels_last": True,
    }  # fmt: skip
    seen, lines = found(torch_python, script, wanted)
    for name in ("first", "second"):
        assert seen[name] == {
            "batch_size": 16, "num_workers": 2, "prefetch_factor": 4, "persistent_workers": True,
            "pin_memory": False,
        }  # fmt: skip
    assert sum(seen["sums"]) == 32
    assert (seen["dtype"], seen["laid_out"], seen["threads"]) == ("torch.bfloat16", True, 1)
    assert not [line for line in lines if "failed" in line]


def test_only_the_loader_that_is_meant_is_changed(torch_python: Path, script: Path) -> None:
    wanted = {"num_workers": 1, "made_at": [str(script), FIRST]}
    seen, _ = found(torch_python, script, wanted, "--data")
    assert (seen["first"]["num_workers"], seen["second"]["num_workers"]) == (1, 0)


def test_samples_are_kept_and_given_out_again(torch_python: Path, script: Path) -> None:
    seen, lines = found(torch_python, script, {"in_memory": True, "num_workers": 0}, "--data")
    assert seen["loaded"] == 0
    assert sum(seen["sums"]) == 32
    assert seen["classes"] == ["even", "odd"]
    assert {"library": "tune", "facts": {"samples_differ": False}} in lines
    # Where a sample is drawn anew each time, keeping it would change what is learnt.
    _, lines = found(torch_python, script, {"in_memory": True}, "--data", "--random")
    assert {"library": "tune", "facts": {"samples_differ": True}} in lines


def test_batches_come_from_arrays(torch_python: Path, script: Path) -> None:
    wanted = {"feed": True}
    seen, lines = found(torch_python, script, wanted, "--data")
    plain, _ = found(torch_python, script, {}, "--data")
    assert seen["loaded"] == 0
    assert len(seen["sums"]) == len(plain["sums"]) == 8
    assert sum(seen["sums"]) == sum(plain["sums"]) == 32
    assert (seen["first"], seen["classes"]) == (plain["first"], plain["classes"])
    assert {"library": "tune", "facts": {"samples_differ": False}} in lines
    assert not [line for line in lines if "failed" in line]
    _, lines = found(torch_python, script, wanted, "--data", "--random")
    assert {"library": "tune", "facts": {"samples_differ": True}} in lines


ARRAYS = """\
import torch
from torch.utils.data import DataLoader, TensorDataset
dataset = TensorDataset(torch.arange(100).reshape(50, 2), torch.arange(50))
loader = DataLoader(dataset, batch_size=8, num_workers=1, pin_memory=False, drop_last=True)
print([[part.tolist() for part in batch] for batch in loader], type(next(iter(loader))).__name__)
print(loader.num_workers, len(loader.dataset), loader.dataset.tensors[1].sum().item())
"""


def test_arrays_are_read_by_batch(torch_python: Path, tmp_path: Path) -> None:
    script = tmp_path / "arrays.py"
    script.write_text(ARRAYS)
    printed = []
    for settings in ("{}", '{"feed": true}'):
        environment = {**with_probe(os.environ, str(tmp_path / "spool")), "TEHO_TUNE": settings}
        done = subprocess.run(
            [torch_python, str(script)], env=environment, capture_output=True, text=True,
            timeout=120, check=True,
        )  # fmt: skip
        printed.append(done.stdout.splitlines())
    plain, fed = printed
    assert plain[0] == fed[0]
    assert (plain[1], fed[1]) == ("1 50 1225", "0 50 1225")


def test_without_settings_the_program_is_unchanged(torch_python: Path, script: Path) -> None:
    seen, _ = found(torch_python, script, {})
    plain = subprocess.run(
        [torch_python, str(script)], capture_output=True, text=True, timeout=120, check=True
    )
    assert seen == json.loads(plain.stdout)
