"""Tell the style of a tune from its mandolin tablature with a small BERT."""
import tempfile

import numpy as np
import torch
from torch.utils.data import TensorDataset
from transformers import (BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed)

FRETS = 120
EVENTS = 64
STYLES = 5


def make_tunes(count, seed):
    rng = np.random.default_rng(seed)
    style = rng.integers(0, STYLES, count)
    jump = rng.integers(-2, 3, (count, EVENTS)) * (1 + style[:, None])
    place = 60 + np.cumsum(jump, axis=1)
    return torch.from_numpy(place % (FRETS - 2) + 2), torch.from_numpy(style)


def collate(rows):
    frets = torch.stack([row[0] for row in rows])
    return {
        "input_ids": frets,
        "attention_mask": torch.ones_like(frets),
        "labels": torch.stack([row[1] for row in rows]),
    }


def score(output):
    return {"accuracy": float((output.predictions.argmax(-1) == output.label_ids).mean())}


def main():
    set_seed(8)
    torch.set_num_threads(2)
    config = BertConfig(
        vocab_size=FRETS, hidden_size=128, num_hidden_layers=4, num_attention_heads=4,
        intermediate_size=512, max_position_embeddings=EVENTS, num_labels=STYLES,
    )
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder, num_train_epochs=4, learning_rate=5e-4,
            per_device_train_batch_size=32, per_device_eval_batch_size=64,
            eval_strategy="no", save_strategy="no", logging_strategy="no",
            report_to="none", disable_tqdm=True, dataloader_pin_memory=False,
            remove_unused_columns=False,
        )
        trainer = Trainer(
            model=BertForSequenceClassification(config), args=arguments, data_collator=collate,
            train_dataset=TensorDataset(*make_tunes(800, 1)),
            eval_dataset=TensorDataset(*make_tunes(200, 2)),
            compute_metrics=score,
        )
        result = trainer.train()
        metrics = trainer.evaluate()
    print(f"training loss {result.training_loss:.4f}")
    print(f"test accuracy {metrics['eval_accuracy']:.3f}")


if __name__ == "__main__":
    main()
