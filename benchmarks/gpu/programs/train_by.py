"""Train a small network by Lightning or by the Trainer of Hugging Face, on generated data.

python train_by.py lightning|trainer SECONDS [--watch]

Prints one line of JSON: how long it trained, and with --watch what PyTorch's profiler says of it.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
import time
from typing import Any

import torch
from torch import nn
from torch.utils.data import Dataset
from watching import MOST_STEPS, account

HAS_GPU = torch.cuda.is_available()
WIDTH = 2048 if HAS_GPU else 32
BATCH = 256 if HAS_GPU else 8


class Vectors(Dataset):
    """Vectors and their classes, always the same."""

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, number: int) -> dict[str, torch.Tensor]:
        generator = torch.Generator().manual_seed(number % 97)
        vector = torch.randn(WIDTH, generator=generator)
        return {"vectors": vector, "labels": torch.tensor(number % 10)}


class Classifier(nn.Module):
    """A perceptron that returns its loss, as the Trainer asks."""

    def __init__(self) -> None:
        super().__init__()
        layers = [layer for _ in range(4) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
        self.layers = nn.Sequential(*layers, nn.Linear(WIDTH, 10))

    def forward(self, vectors: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        scores = self.layers(vectors)
        return {"loss": nn.functional.cross_entropy(scores, labels), "logits": scores}


def by_lightning(seconds: float, steps: int, folder: str) -> None:
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = Classifier()

        def training_step(self, batch: dict[str, torch.Tensor], _: int) -> torch.Tensor:
            return self.model(**batch)["loss"]

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=1e-3)

    trainer = lightning.Trainer(
        max_time={"seconds": round(seconds)}, max_epochs=-1, max_steps=steps,
        logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        default_root_dir=folder, devices=1, accelerator="gpu" if HAS_GPU else "cpu",
    )  # fmt: skip
    trainer.fit(Module(), torch.utils.data.DataLoader(Vectors(), batch_size=BATCH))


def by_trainer(seconds: float, steps: int, folder: str) -> None:
    import transformers

    class EndsInTime(transformers.TrainerCallback):
        def __init__(self) -> None:
            self.began_s = time.monotonic()

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
            if time.monotonic() - self.began_s > seconds:
                control.should_training_stop = True
            return control

    arguments = transformers.TrainingArguments(
        output_dir=folder, per_device_train_batch_size=BATCH, max_steps=steps,
        report_to=[], save_strategy="no", logging_strategy="no", disable_tqdm=True,
        remove_unused_columns=False, use_cpu=not HAS_GPU,
    )  # fmt: skip
    trainer = transformers.Trainer(
        model=Classifier(), args=arguments, train_dataset=Vectors(), callbacks=[EndsInTime()]
    )
    trainer.train()


def main(which: str, seconds: float, *, watched: bool) -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"
    logging.disable(logging.WARNING)
    told: dict[str, Any] = {}
    steps = MOST_STEPS if watched else 10**9
    train = {"lightning": by_lightning, "trainer": by_trainer}[which]
    with tempfile.TemporaryDirectory() as folder, account(told, watched=watched):
        began_s = time.perf_counter()
        train(seconds, steps, folder)
        told["elapsed_s"] = time.perf_counter() - began_s
    print(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), watched="--watch" in sys.argv)
