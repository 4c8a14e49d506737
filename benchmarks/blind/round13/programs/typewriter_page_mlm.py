"""Fill worn-out groups of characters of typewritten pages with a small masked language model."""
import tempfile

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForMaskedLM, Trainer, TrainingArguments, set_seed

VOCAB = 5000
LENGTH = 48
MASK = 1


def make_pages(count, seed):
    rng = np.random.default_rng(seed)
    start = rng.integers(10, VOCAB, (count, 1))
    stride = rng.integers(1, 9, (count, 1))
    ids = (start + stride * np.arange(LENGTH)[None, :]) % (VOCAB - 10) + 10
    hidden = rng.random((count, LENGTH)) < 0.15
    labels = np.where(hidden, ids, -100)
    return np.where(hidden, MASK, ids), labels


class Pages(Dataset):
    def __init__(self, count, seed):
        ids, labels = make_pages(count, seed)
        self.ids = torch.from_numpy(ids)
        self.labels = torch.from_numpy(labels)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        ids = self.ids[index]
        return {
            "input_ids": ids,
            "attention_mask": torch.ones_like(ids),
            "labels": self.labels[index],
        }


def score(output):
    guess = output.predictions.argmax(-1)
    known = output.label_ids != -100
    return {"accuracy": float((guess == output.label_ids)[known].mean())}


def main():
    set_seed(5)
    torch.set_num_threads(2)
    config = BertConfig(
        vocab_size=VOCAB, hidden_size=64, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=128, max_position_embeddings=64,
    )
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder, num_train_epochs=5, learning_rate=1e-3,
            per_device_train_batch_size=16, per_device_eval_batch_size=8,
            eval_strategy="epoch", save_strategy="no", logging_strategy="no",
            report_to="none", disable_tqdm=True, dataloader_pin_memory=False,
        )
        trainer = Trainer(
            model=BertForMaskedLM(config), args=arguments,
            train_dataset=Pages(640, 1), eval_dataset=Pages(320, 2),
            compute_metrics=score,
        )
        trainer.train()
        final = trainer.state.log_history
    for entry in final:
        if "eval_accuracy" in entry:
            print(f"epoch {entry['epoch']:.0f}: accuracy {entry['eval_accuracy']:.4f}")


if __name__ == "__main__":
    main()
