"""Settings reach an unmodified PyTorch program, at the loader that is meant."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from probe.probed import SPIN, WITH_FRAMEWORKS, Probed
from support import lacks_framework

pytestmark = pytest.mark.skipif(bool(lacks_framework("torch")), reason=lacks_framework("torch"))

PROGRAM = """\
import json, pickle, sys
import torch
from torch.utils.data import DataLoader, Dataset

class Numbers(Dataset):
    classes = ("even", "odd")
    loaded = 0
    def __len__(self):
        return 64
    def __getitem__(self, index):
        Numbers.loaded += 1
        noise = torch.randn(()) if IS_RANDOM else 0
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
    if not WITH_MODEL:
        print(json.dumps(found))
        sys.exit()
    layers = torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.Linear(16, 2)
    model = torch.nn.Sequential(*layers)
    result = model(torch.ones(2, 3, 4, 4))
    result.float().sum().backward()
    if WITH_STEP:  # an optimizer imports PyTorch's compiler: two seconds of a core
        torch.optim.SGD(model.parameters(), 0.1).step()
    found["dtype"] = str(result.dtype)
    found["laid_out"] = model[0].weight.is_contiguous(memory_format=torch.channels_last)
    found["threads"] = torch.get_num_threads()
    print(json.dumps(found))
"""
FIRST = SPIN.count("\n") + PROGRAM[: PROGRAM.index("first =")].count("\n") + 1
ARRAYS = """\
import torch
from torch.utils.data import DataLoader, TensorDataset
dataset = TensorDataset(torch.arange(100).reshape(50, 2), torch.arange(50))
loader = DataLoader(dataset, batch_size=8, num_workers=1, pin_memory=False, drop_last=True)
print([[part.tolist() for part in batch] for batch in loader], type(next(iter(loader))).__name__)
print(loader.num_workers, len(loader.dataset), loader.dataset.tensors[1].sum().item())
"""


def program(*, is_random: bool = False, with_model: bool = False, with_step: bool = False) -> str:
    flags = {"IS_RANDOM": is_random, "WITH_MODEL": with_model, "WITH_STEP": with_step}
    text = PROGRAM
    for name, value in flags.items():
        text = text.replace(name, str(value))
    return text


class Seen(NamedTuple):
    """What a program saw, and the probe's lines."""

    printed: str
    lines: list[dict[str, Any]]

    @property
    def found(self) -> dict[str, Any]:
        return json.loads(self.printed)

    @property
    def samples_differ(self) -> bool:
        facts = [line["facts"] for line in self.lines if line.get("library") == "tune"]
        assert all(one.keys() == {"samples_differ"} for one in facts)
        (found,) = {one["samples_differ"] for one in facts}
        return found


def seen(probed: Probed, settings: Mapping[str, Any], **programs: str) -> dict[str, Seen]:
    """Run programs with settings, each in a fork, because PyTorch takes seconds to import."""
    probed.environment = {"TEHO_TUNE": json.dumps(settings)}
    answers = {}
    for name, done in probed.forked("import torch.utils.data", programs).items():
        assert done.returncode == 0, done.stderr
        (path,) = probed.spool.glob(f"{done.pid}-*.jsonl")
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert not [line for line in lines if "failed" in line]
        answers[name] = Seen(done.stdout.decode(), lines)
    return answers


@pytest.fixture
def probed(tmp_path: Path) -> Probed:
    return Probed(tmp_path)


@pytest.fixture(scope="module")
def unset(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Seen]:
    """Return what the programs see without settings."""
    probed = Probed(tmp_path_factory.mktemp("unset"))
    whole = program(with_model=True)
    return seen(probed, {}, data=program(), whole=whole, arrays=ARRAYS)


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Seen]:
    """Return what the programs see if their batches come from arrays."""
    probed = Probed(tmp_path_factory.mktemp("fed"))
    other = program(is_random=True)
    return seen(probed, {"feed": True}, data=program(), noisy=other, arrays=ARRAYS)


def test_loaders_and_models_are_as_wanted(probed: Probed) -> None:
    wanted = {
        "num_workers": 2, "prefetch_factor": 4, "persistent_workers": True, "batch_size": 16,
        "threads": 1, "autocast": "bfloat16", "channels_last": True,
    }  # fmt: skip
    own = seen(probed, wanted, whole=program(with_model=True, with_step=True))["whole"].found
    for name in ("first", "second"):
        assert own[name] == {
            "batch_size": 16, "num_workers": 2, "prefetch_factor": 4, "persistent_workers": True,
            "pin_memory": False,
        }  # fmt: skip
    assert sum(own["sums"]) == 32
    assert (own["dtype"], own["laid_out"], own["threads"]) == ("torch.bfloat16", True, 1)


def test_only_the_loader_that_is_meant_is_changed(probed: Probed) -> None:
    wanted = {"num_workers": 1, "made_at": [str(probed.folder / "data.py"), FIRST]}
    own = seen(probed, wanted, data=program())["data"].found
    assert (own["first"]["num_workers"], own["second"]["num_workers"]) == (1, 0)


def test_samples_are_kept_and_given_out_again(probed: Probed) -> None:
    wanted = {"in_memory": True, "num_workers": 0}
    kept = seen(probed, wanted, data=program(), noisy=program(is_random=True))
    own = kept["data"].found
    assert own["loaded"] == 0
    assert sum(own["sums"]) == 32
    assert own["classes"] == ["even", "odd"]
    assert not kept["data"].samples_differ
    # Where a sample is drawn anew each time, keeping it would change what is learnt.
    assert kept["noisy"].samples_differ


def test_batches_come_from_arrays(fed: dict[str, Seen], unset: dict[str, Seen]) -> None:
    own, plain = fed["data"].found, unset["data"].found
    assert own["loaded"] == 0
    assert len(own["sums"]) == len(plain["sums"]) == 8
    assert sum(own["sums"]) == sum(plain["sums"]) == 32
    assert (own["first"], own["classes"]) == (plain["first"], plain["classes"])
    assert not fed["data"].samples_differ
    assert fed["noisy"].samples_differ


def test_arrays_are_read_by_batch(fed: dict[str, Seen], unset: dict[str, Seen]) -> None:
    plain, own = (one["arrays"].printed.splitlines() for one in (unset, fed))
    assert plain[0] == own[0]
    assert (plain[1], own[1]) == ("1 50 1225", "0 50 1225")


def test_without_settings_the_program_is_unchanged(unset: dict[str, Seen], probed: Probed) -> None:
    plain = probed.run(program(with_model=True), python=WITH_FRAMEWORKS, probe=False)
    assert plain.returncode == 0, plain.stderr
    assert unset["whole"].found == json.loads(plain.stdout)
