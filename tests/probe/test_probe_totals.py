"""Who knows how many steps a program will make, with the real libraries."""

from __future__ import annotations

import pytest

from probe.probed import Probed
from support import lacks_framework
from teho.explain.time_left import _steps_left
from teho.model.watched import Total, WatchedProcess

pytestmark = pytest.mark.skipif(bool(lacks_framework("torch")), reason=lacks_framework("torch"))
TRAINERS = pytest.mark.drawn(1, tests="trainers")
"""These tests differ in the library alone, and each needs seconds to import its own."""

STEPS = """
import sys, time, torch
from torch.utils.data import DataLoader, TensorDataset
from tqdm.auto import tqdm
weight = torch.nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([weight], lr=0.1)
def step():
    time.sleep(0.02)
    weight.grad = torch.ones(1)
    optimizer.step()
QUIET = dict(file=open("/dev/null", "w"))
loader = DataLoader(TensorDataset(torch.zeros(100, 1)), batch_size=2)  # 50 batches
"""
BARS = {
    "steps": "for _ in tqdm(range(100), **QUIET): step()",
    "epochs": """
for _ in tqdm(range(3), **QUIET):
    for batch in tqdm(loader, leave=False, **QUIET): step()
""",
    "by_hand": """
bar = tqdm(total=300, initial=200, **QUIET)
for _ in range(100):
    step()
    bar.update()
bar.close()
""",
    # None of these bars shows the whole program.
    "an_epoch": """
for _ in range(2):
    for batch in tqdm(loader, **QUIET): step()
""",
    "an_epoch_by_its_length": """
for _ in range(2):
    for batch in tqdm(enumerate(loader), total=len(loader), **QUIET): step()
""",
    "the_same_again": """
for _ in range(8):
    for _ in tqdm(range(20), **QUIET): step()
""",
    "without_total": "for _ in tqdm(iter(range(100)), **QUIET): step()",
}
KNOWN = {"steps": 100, "epochs": 3, "by_hand": 300}
TRAINER = """
import os, time, torch
from transformers import Trainer, TrainerCallback, TrainingArguments
class Line(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
    def forward(self, x, labels=None):
        time.sleep(0.02)
        return {"loss": (self.layer(x) - labels).square().mean()}
class Many(torch.utils.data.Dataset):
    def __len__(self): return 200
    def __getitem__(self, place): return {"x": torch.ones(1), "labels": torch.ones(1)}
arguments = TrainingArguments(
    output_dir=os.environ["OUT"], num_train_epochs=3, per_device_train_batch_size=4,
    save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=True, logging_strategy="no",
)
Trainer(Line(), arguments, train_dataset=Many()).train()
print("trained")
"""
LIGHTNING = """
import time, torch, warnings
warnings.simplefilter("ignore")
import pytorch_lightning as lightning
from torch.utils.data import DataLoader, TensorDataset
class Line(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
    def training_step(self, batch, place):
        time.sleep(0.02)
        return self.layer(batch[0]).square().mean()
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.ones(100, 1)), batch_size=2)
quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False,
             enable_model_summary=False, accelerator="cpu")
lightning.Trainer(**LIMIT, **quiet).fit(Line(), loader)
print("trained")
"""
KERAS = """
import time, keras, numpy
model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
class Slow(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None): time.sleep(0.02)
x = numpy.zeros((100, 1), "float32")
model.fit(x, x, batch_size=2, epochs=3, verbose=0, callbacks=[Slow()])
print("trained")
"""


def totals(process: WatchedProcess) -> list[Total]:
    return [one.total for one in process.progress if one.total is not None]


def check(process: WatchedProcess, library: str, total: int) -> None:
    """See that the notes during the program lead to the number of steps that were left."""
    found = totals(process)
    assert found, process.progress
    assert {(one.known_by, one.total) for one in found} == {(library, total)}
    place, last = [
        (place, one) for place, one in enumerate(process.progress) if one.total is not None
    ][-1]
    made = process.progress[-1].steps
    if place:
        left = _steps_left(process.progress[: place + 1], last.total)
        assert left is not None
        # The end of an epoch is seen up to a second later, and later on a busy machine: 50 steps/s.
        assert left == pytest.approx(made - last.steps, abs=75)


def test_the_outermost_bar_of_tqdm(probed: Probed) -> None:
    probed.environment["TEHO_PROBE_STEPS"] = "1"  # so the notes are written each second
    # An optimizer imports PyTorch's compiler, which takes two seconds in each fork.
    imports = "import torch, torch._dynamo, tqdm.auto"
    done = probed.forked(imports, {k: STEPS + v for k, v in BARS.items()})
    assert {name: one.returncode for name, one in done.items()} == dict.fromkeys(BARS, 0)
    processes = {one.pid: one for one in probed.watched()}
    found = {name: processes[one.pid] for name, one in done.items()}
    for name, total in KNOWN.items():
        check(found[name], "tqdm", total)
    for name in BARS.keys() - KNOWN.keys():
        assert len(found[name].progress) > 1, name
        # The first look cannot know that a bar will come again.
        assert len(totals(found[name])) <= (name == "the_same_again"), name


@TRAINERS
@pytest.mark.skipif(bool(lacks_framework("transformers")), reason=lacks_framework("transformers"))
def test_the_trainer_of_transformers(probed: Probed) -> None:
    probed.environment |= {"TEHO_PROBE_STEPS": "1", "OUT": str(probed.folder / "out")}
    done = probed.forked("import transformers.trainer", {"trainer": TRAINER}, is_silent=False)
    assert done["trainer"].returncode == 0, done["trainer"].stderr
    (process,) = [one for one in probed.watched() if one.pid == done["trainer"].pid]
    check(process, "transformers", 150)


@TRAINERS
@pytest.mark.skipif(
    bool(lacks_framework("pytorch_lightning")), reason=lacks_framework("pytorch_lightning")
)
def test_the_trainer_of_lightning(probed: Probed) -> None:
    limits = {"epochs": "dict(max_epochs=3)", "steps": "dict(max_steps=130)"}
    probed.environment["TEHO_PROBE_STEPS"] = "1"
    done = probed.forked(
        "import pytorch_lightning",
        {name: f"LIMIT = {limit}\n{LIGHTNING}" for name, limit in limits.items()},
        is_silent=False,
    )
    assert {name: one.returncode for name, one in done.items()} == dict.fromkeys(limits, 0)
    processes = {one.pid: one for one in probed.watched()}
    for name, total in (("epochs", 150), ("steps", 130)):
        check(processes[done[name].pid], "lightning", total)


@TRAINERS
@pytest.mark.skipif(bool(lacks_framework("keras")), reason=lacks_framework("keras"))
def test_keras(probed: Probed) -> None:
    probed.environment |= {"TEHO_PROBE_STEPS": "1", "KERAS_BACKEND": "torch"}
    done = probed.forked("import keras", {"keras": KERAS}, is_silent=False)
    assert done["keras"].returncode == 0, done["keras"].stderr
    (process,) = [one for one in probed.watched() if one.pid == done["keras"].pid]
    check(process, "keras", 150)
