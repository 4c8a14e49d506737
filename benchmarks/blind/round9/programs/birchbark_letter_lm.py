"""A small causal model of birch-bark letters with the Hugging Face trainer."""
import os
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

VOCABULARY, LENGTH = 8000, 64
LETTERS, HELD_OUT = 640, 288


class Letters(Dataset):
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        rank = np.arange(1, VOCABULARY + 1)
        words = rng.choice(VOCABULARY, (count, LENGTH), p=(1 / rank) / (1 / rank).sum())
        formula = rng.integers(0, 40, count)
        for place in range(0, LENGTH - 4, 8):  # set phrases of greeting and request
            words[:, place] = 100 + formula
            words[:, place + 1] = 200 + (formula * 7 + place) % 90
        self.words = torch.from_numpy(words)

    def __len__(self):
        return len(self.words)

    def __getitem__(self, index):
        return {"input_ids": self.words[index], "labels": self.words[index]}


def score(outcome):
    guess = np.argmax(outcome.predictions, axis=-1)[:, :-1]
    truth = outcome.label_ids[:, 1:]
    return {"accuracy": float((guess == truth).mean())}


def main():
    set_seed(14)
    config = GPT2Config(
        vocab_size=VOCABULARY, n_positions=LENGTH, n_embd=96, n_layer=2, n_head=4,
        bos_token_id=0, eos_token_id=0, use_cache=False,
    )
    model = GPT2LMHeadModel(config)
    folder = tempfile.TemporaryDirectory()
    arguments = TrainingArguments(
        output_dir=folder.name, num_train_epochs=1, per_device_train_batch_size=16,
        per_device_eval_batch_size=8, learning_rate=1e-3, eval_strategy="steps", eval_steps=20,
        save_strategy="no", logging_strategy="no", report_to="none", use_cpu=True,
        disable_tqdm=True, seed=14,
    )
    trainer = Trainer(
        model=model, args=arguments, train_dataset=Letters(LETTERS, 1),
        eval_dataset=Letters(HELD_OUT, 2), compute_metrics=score,
    )
    trainer.train()
    for entry in trainer.state.log_history:
        if "eval_accuracy" in entry:
            print(f"step {entry['step']}: loss {entry['eval_loss']:.3f}, accuracy {entry['eval_accuracy']:.3f}")
    folder.cleanup()


if __name__ == "__main__":
    main()
