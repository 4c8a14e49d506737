"""Train a small GPT on folk tunes and measure next-note accuracy with the Trainer."""
import os

os.environ.setdefault("HF_HOME", os.path.abspath("hf_home"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

EVENTS = 3000  # pitch x duration x ornament
LENGTH = 128


def compose(count, seed):
    rng = np.random.default_rng(seed)
    follow = np.random.default_rng(7).integers(1, EVENTS, EVENTS)
    notes = np.empty((count, LENGTH), dtype=np.int64)
    # most tunes stay within a few hundred common events
    notes[:, 0] = rng.integers(1, 300, count)
    for t in range(1, LENGTH):
        free = rng.random(count) < 0.3
        notes[:, t] = np.where(free, rng.integers(1, 300, count), follow[notes[:, t - 1]])
    return notes


class Tunes(Dataset):
    def __init__(self, count, seed):
        self.notes = torch.from_numpy(compose(count, seed))

    def __len__(self):
        return len(self.notes)

    def __getitem__(self, i):
        return {"input_ids": self.notes[i], "labels": self.notes[i]}


def next_note_accuracy(pred):
    guess = np.argmax(pred.predictions[:, :-1], axis=-1)
    truth = pred.label_ids[:, 1:]
    return {"next_note": float((guess == truth).mean())}


def main():
    set_seed(3)
    config = GPT2Config(
        vocab_size=EVENTS, n_positions=LENGTH, n_embd=128, n_layer=2, n_head=4,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0, use_cache=False,
    )
    args = TrainingArguments(
        output_dir="tunes_run", per_device_train_batch_size=16, per_device_eval_batch_size=16,
        max_steps=30, learning_rate=3e-3, logging_steps=10, save_strategy="no",
        report_to="none", use_cpu=True, disable_tqdm=True, seed=3,
    )
    trainer = Trainer(
        model=GPT2LMHeadModel(config),
        args=args,
        train_dataset=Tunes(480, 10),
        eval_dataset=Tunes(640, 11),
        compute_metrics=next_note_accuracy,
    )
    trainer.train()
    scores = trainer.evaluate()
    print(f"eval loss {scores['eval_loss']:.2f}, next-note accuracy {scores['eval_next_note']:.3f}")


if __name__ == "__main__":
    main()
