"""Fine-tune a small BERT to tell the outcome of court rulings from their headnotes."""
import os
import tempfile

os.environ["TOKENIZERS_PARALLELISM"] = "false"
import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import (BertConfig, BertForSequenceClassification, Trainer,
                          TrainingArguments, set_seed)

VOCABULARY, LONGEST, RULINGS, BATCH, STEPS = 40000, 256, 1600, 16, 64


class Headnotes(Dataset):
    """Numbered words of headnotes; a few are long, most are a paragraph."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        lengths = np.clip(rng.lognormal(3.4, 0.45, n).astype(int), 8, LONGEST)
        lengths[::400] = LONGEST
        self.label = rng.integers(0, 3, n)
        self.words = []
        for size, outcome in zip(lengths, self.label):
            words = rng.zipf(1.3, size) % (VOCABULARY - 100) + 100
            words[rng.random(size) < 0.15] = 10 + outcome
            self.words.append(words.tolist())

    def __len__(self):
        return len(self.words)

    def __getitem__(self, i):
        return {"words": self.words[i], "label": int(self.label[i])}


def collate(items):
    width = LONGEST
    ids = torch.zeros(len(items), width, dtype=torch.long)
    mask = torch.zeros(len(items), width, dtype=torch.long)
    for row, item in enumerate(items):
        size = len(item["words"])
        ids[row, :size] = torch.tensor(item["words"])
        mask[row, :size] = 1
    return {"input_ids": ids, "attention_mask": mask,
            "labels": torch.tensor([item["label"] for item in items])}


def main():
    set_seed(14)
    model = BertForSequenceClassification(BertConfig(
        vocab_size=VOCABULARY, hidden_size=128, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=512, max_position_embeddings=LONGEST, num_labels=3))
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder, max_steps=STEPS, per_device_train_batch_size=BATCH,
            learning_rate=5e-4, logging_steps=16, report_to="none", use_cpu=True,
            remove_unused_columns=False, disable_tqdm=True, seed=14,
            save_strategy="steps", save_steps=4, save_total_limit=2)
        trainer = Trainer(model=model, args=arguments, data_collator=collate,
                          train_dataset=Headnotes(RULINGS, 1))
        result = trainer.train()
    print(f"training loss {result.training_loss:.4f}")
    model.eval()
    test = Headnotes(128, 2)
    with torch.no_grad():
        batch = collate([test[i] for i in range(len(test))])
        labels = batch.pop("labels")
        guess = model(**batch).logits.argmax(1)
    print(f"accuracy {float((guess == labels).float().mean()):.3f}")


if __name__ == "__main__":
    main()
