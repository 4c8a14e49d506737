"""Training loops as users write them, for `benchmarks/profile_steps.py` and the tests.

    python benchmarks/profile_loops.py NAME STEPS

Each loop marks its forward pass with its own number of the step: `loop step 20`. So a trace shows
which steps it has, whatever the probe counted.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset

FEATURES, BATCH = 16, 8


def marked(number: int) -> AbstractContextManager[Any]:
    return torch.profiler.record_function(f"loop step {number}")


def a_model() -> nn.Module:
    return nn.Sequential(nn.Linear(FEATURES, FEATURES), nn.ReLU(), nn.Linear(FEATURES, 1))


def batches(count: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for _ in range(count):
        yield torch.rand(BATCH, FEATURES), torch.rand(BATCH, 1)


def loss_of(model: nn.Module, number: int, inputs: torch.Tensor, targets: torch.Tensor):
    with marked(number):
        return mse_loss(model(inputs), targets)


def plain(steps: int) -> None:
    model = a_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for number, batch in enumerate(batches(steps), 1):
        optimizer.zero_grad()
        loss_of(model, number, *batch).backward()
        optimizer.step()


def accumulation(steps: int) -> None:
    model = a_model()
    optimizer = torch.optim.Adam(model.parameters())
    for number, batch in enumerate(batches(4 * steps)):
        (loss_of(model, number // 4 + 1, *batch) / 4).backward()
        if number % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()


def gan(steps: int, critic_steps: int = 1) -> None:
    generator, critic = nn.Linear(4, FEATURES), a_model()
    first = torch.optim.Adam(critic.parameters())
    second = torch.optim.Adam(generator.parameters())
    number = 0
    for inputs, targets in batches(steps):
        for _ in range(critic_steps):
            number += 1
            fake = generator(torch.rand(BATCH, 4)).detach()
            first.zero_grad()
            (loss_of(critic, number, inputs, targets) - critic(fake).mean()).backward()
            first.step()
        second.zero_grad()
        critic(generator(torch.rand(BATCH, 4))).mean().backward()
        second.step()


def critic(steps: int) -> None:
    gan(steps // 3 + 1, critic_steps=3)


def evaluation(steps: int) -> None:
    model = a_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for number, batch in enumerate(batches(steps), 1):
        optimizer.zero_grad()
        loss_of(model, number, *batch).backward()
        optimizer.step()
        if number % 7 == 0:
            model.eval()
            with torch.no_grad():
                for inputs, _ in batches(10):
                    model(inputs)
            model.train()


def untold(steps: int) -> None:
    """Teho cannot count these steps: there is no optimizer, and no call of `teho.step()`."""
    model = a_model()
    with torch.no_grad():
        for number, (inputs, _) in enumerate(batches(steps), 1):
            with marked(number):
                model(inputs)


def told(steps: int) -> None:
    import teho

    model = a_model()
    with torch.no_grad():
        for number, (inputs, _) in enumerate(batches(steps), 1):
            with marked(number):
                model(inputs)
            teho.step()


def told_optimizer(steps: int) -> None:
    import teho

    model = a_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for number in range(1, steps + 1):
        for batch in batches(3):
            optimizer.zero_grad()
            loss_of(model, number, *batch).backward()
            optimizer.step()
        teho.step()


def epochs(steps: int, workers: int = 0) -> None:
    data = TensorDataset(torch.rand(48, FEATURES), torch.rand(48, 1))
    model = a_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    number = 0
    while number < steps:
        for batch in DataLoader(data, batch_size=BATCH, shuffle=True, num_workers=workers):
            number += 1
            optimizer.zero_grad()
            loss_of(model, number, *batch).backward()
            optimizer.step()


def workers(steps: int) -> None:
    epochs(steps, workers=1)


def scaler(steps: int) -> None:
    model = a_model()
    optimizer = torch.optim.AdamW(model.parameters())
    scale = torch.amp.GradScaler("cpu")
    for number, batch in enumerate(batches(steps), 1):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = loss_of(model, number, *batch)
        scale.scale(loss).backward()
        scale.step(optimizer)
        scale.update()


def lbfgs(steps: int) -> None:
    model = a_model()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
    for number, batch in enumerate(batches(steps), 1):

        def closure(number: int = number, batch: Any = batch) -> torch.Tensor:
            optimizer.zero_grad()
            loss = loss_of(model, number, *batch)
            loss.backward()
            return loss

        optimizer.step(closure)


def foreach(steps: int) -> None:
    model = a_model()
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
    for number, batch in enumerate(batches(steps), 1):
        optimizer.zero_grad()
        loss_of(model, number, *batch).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()


def checkpoints(steps: int) -> None:
    from tempfile import TemporaryDirectory

    model = a_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with TemporaryDirectory() as folder:
        for number, batch in enumerate(batches(steps), 1):
            optimizer.zero_grad()
            loss_of(model, number, *batch).backward()
            optimizer.step()
            if number % 5 == 0:
                torch.save(model.state_dict(), Path(folder, "model.pt"))


def compiled(steps: int) -> None:
    model = a_model()
    forward = torch.compile(model, backend="aot_eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for number, batch in enumerate(batches(steps), 1):
        optimizer.zero_grad()
        loss_of(forward, number, *batch).backward()
        optimizer.step()


def ddp(steps: int) -> None:
    import os

    from torch import distributed

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
    distributed.init_process_group("gloo", rank=0, world_size=1)
    model = nn.parallel.DistributedDataParallel(a_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for number, batch in enumerate(batches(steps), 1):
        optimizer.zero_grad()
        loss_of(model, number, *batch).backward()
        optimizer.step()
    distributed.destroy_process_group()


def thread(steps: int) -> None:
    from threading import Thread

    training = Thread(target=plain, args=(steps,))
    training.start()
    training.join()


def one_per_layer(steps: int) -> None:
    layers = [nn.Linear(FEATURES, FEATURES) for _ in range(3)]
    model = nn.Sequential(*layers, nn.Linear(FEATURES, 1))
    optimizers = [torch.optim.SGD(layer.parameters(), lr=0.01) for layer in layers]
    for number, batch in enumerate(batches(steps), 1):
        loss_of(model, number, *batch).backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()


def lightning(steps: int, accumulate: int = 1) -> None:
    import pytorch_lightning as pl

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = a_model()

        def training_step(self, batch: Any, _: int) -> torch.Tensor:
            return loss_of(self.model, self.global_step + 1, *batch)

        def validation_step(self, batch: Any, _: int) -> None:
            self.model(batch[0])

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.Adam(self.parameters())

    data = TensorDataset(torch.rand(64, FEATURES), torch.rand(64, 1))
    loader = DataLoader(data, batch_size=BATCH)
    trainer = pl.Trainer(
        max_steps=steps, accumulate_grad_batches=accumulate, logger=False, accelerator="cpu",
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(Module(), loader, loader)


def lightning_accumulation(steps: int) -> None:
    lightning(steps, accumulate=2)


def trainer(steps: int) -> None:
    from tempfile import TemporaryDirectory

    from transformers import Trainer, TrainingArguments

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = a_model()
            self.calls = 0

        def forward(self, inputs: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
            if not self.training:
                return {"loss": mse_loss(self.model(inputs), labels)}
            self.calls += 1
            return {"loss": loss_of(self.model, (self.calls - 1) // 2 + 1, inputs, labels)}

    data = [{"inputs": torch.rand(FEATURES), "labels": torch.rand(1)} for _ in range(64)]
    with TemporaryDirectory() as folder:
        Trainer(
            model=Model(),
            args=TrainingArguments(
                output_dir=folder, max_steps=steps, per_device_train_batch_size=BATCH,
                gradient_accumulation_steps=2, report_to=[], use_cpu=True, disable_tqdm=True,
                save_strategy="no", eval_strategy="steps", eval_steps=6,
            ),
            train_dataset=data,
            eval_dataset=data[:8],
        ).train()  # fmt: skip


LOOPS = (
    plain, accumulation, gan, critic, evaluation, told, told_optimizer, epochs, workers, scaler,
    lbfgs, foreach, checkpoints, compiled, ddp, thread, one_per_layer, lightning,
    lightning_accumulation, trainer,
)  # fmt: skip
"""All but `untold`, whose steps cannot be counted."""
NAMES = tuple(loop.__name__ for loop in LOOPS)

if __name__ == "__main__":
    torch.set_num_threads(1)
    globals()[sys.argv[1]](int(sys.argv[2]))
