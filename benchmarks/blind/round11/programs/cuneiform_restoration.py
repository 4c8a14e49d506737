"""Restores broken signs on clay tablets: a masked language model with Trainer."""
import sys
import tempfile
import time

import numpy as np
import torch
from transformers import (
    BertConfig, BertForMaskedLM, PrinterCallback, Trainer, TrainerCallback, TrainingArguments,
)

GPU = torch.cuda.is_available()
SIGNS = 8000 if GPU else 400
LENGTH = 128 if GPU else 32
BREAK = 3


class Tablets(torch.utils.data.Dataset):
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        text = (rng.random((count, LENGTH)) ** 2.5 * (SIGNS - 4)).astype(np.int64) + 4
        text[:, 1::2] = (text[:, ::2] * 7 + 11) % (SIGNS - 4) + 4
        broken = rng.random(text.shape) < 0.15
        self.labels = torch.from_numpy(np.where(broken, text, -100))
        self.input_ids = torch.from_numpy(np.where(broken, BREAK, text))
        self.mask = torch.ones(LENGTH, dtype=torch.long)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, row):
        return {"input_ids": self.input_ids[row], "labels": self.labels[row],
                "attention_mask": self.mask}


def restored(prediction):
    logits, labels = prediction
    guess = np.argmax(logits, axis=-1)
    broken = labels != -100
    return {"restored": float((guess[broken] == labels[broken]).mean())}


class Budget(TrainerCallback):
    def __init__(self, seconds):
        self.seconds = seconds
        self.score = float("nan")

    def on_train_begin(self, args, state, control, **kwargs):
        self.begin = time.perf_counter()

    def on_evaluate(self, args, state, control, metrics, **kwargs):
        self.score = metrics["eval_restored"]

    def on_step_end(self, args, state, control, **kwargs):
        self.steps = state.global_step
        if time.perf_counter() - self.begin > self.seconds:
            control.should_training_stop = True


def main():
    budget_s = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    torch.manual_seed(8)
    width, depth = (384, 6) if GPU else (64, 2)
    model = BertForMaskedLM(BertConfig(
        vocab_size=SIGNS, hidden_size=width, num_hidden_layers=depth,
        num_attention_heads=width // 64, intermediate_size=4 * width,
        max_position_embeddings=LENGTH,
    ))
    train = Tablets(20_000 if GPU else 500, 1)
    held_out = Tablets(256 if GPU else 32, 2)
    clock = Budget(budget_s)
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(
            output_dir=folder, per_device_train_batch_size=64 if GPU else 8,
            per_device_eval_batch_size=64 if GPU else 8, max_steps=1_000_000,
            learning_rate=3e-4, lr_scheduler_type="constant", bf16=GPU,
            eval_strategy="steps", eval_steps=25, save_strategy="no",
            logging_strategy="no", report_to="none", disable_tqdm=True,
        )
        trainer = Trainer(
            model=model, args=args, train_dataset=train, eval_dataset=held_out,
            compute_metrics=restored, callbacks=[clock],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    print(f"done: {clock.steps} steps, restored {clock.score:.3f}")


if __name__ == "__main__":
    main()
