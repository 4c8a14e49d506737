"""Train a small masked language model on medieval charter formulas (Trainer)."""
import tempfile

import numpy as np
import torch
from transformers import BertConfig, BertForMaskedLM, Trainer, TrainingArguments

VOCAB = 6000
LENGTH = 48
MASK = 3


def make_charters(count, seed):
    rng = np.random.default_rng(seed)
    formulas = np.random.default_rng(77).integers(10, VOCAB, (60, 12))
    items = []
    for _ in range(count):
        words = np.concatenate([formulas[i] for i in rng.integers(0, 60, 4)])
        stray = rng.random(LENGTH) < 0.1
        words = np.where(stray, rng.integers(10, VOCAB, LENGTH), words)
        chosen = rng.random(LENGTH) < 0.15
        labels = np.where(chosen, words, -100)
        tokens = np.where(chosen, MASK, words)
        items.append({"input_ids": torch.from_numpy(tokens),
                      "attention_mask": torch.ones(LENGTH, dtype=torch.long),
                      "labels": torch.from_numpy(labels)})
    return items


def compute_metrics(prediction):
    logits, labels = prediction
    guess = np.argmax(logits, axis=-1)
    masked = labels != -100
    return {"accuracy": float((guess[masked] == labels[masked]).mean())}


def main():
    torch.manual_seed(0)
    config = BertConfig(vocab_size=VOCAB, hidden_size=96, num_hidden_layers=2,
                        num_attention_heads=4, intermediate_size=256,
                        max_position_embeddings=64)
    model = BertForMaskedLM(config)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            num_train_epochs=3,
            per_device_train_batch_size=32,
            per_device_eval_batch_size=8,
            learning_rate=2e-3,
            eval_strategy="epoch",
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
            seed=5,
        )
        trainer = Trainer(
            model=model,
            args=arguments,
            train_dataset=make_charters(960, 1),
            eval_dataset=make_charters(400, 2),
            compute_metrics=compute_metrics,
        )
        trainer.train()
        final = trainer.evaluate()
    print(f"loss {final['eval_loss']:.4f} accuracy {final['eval_accuracy']:.4f}")


if __name__ == "__main__":
    main()
