"""Route complaints of a railway to six desks with a small DistilBERT and the Trainer."""
import os
import random

import numpy as np
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import tensor
from transformers import (DistilBertConfig, DistilBertForSequenceClassification, Trainer,
                          TrainingArguments)

WORK = os.path.join(os.environ.get("TMPDIR", "."), "complaint_trainer")
DESKS = {
    "delay": ["late", "waited", "missed", "connection"],
    "ticket": ["refund", "price", "machine", "charged"],
    "seat": ["reserved", "standing", "crowded", "window"],
    "clean": ["dirty", "smell", "toilet", "bin"],
    "noise": ["loud", "phone", "brakes", "announcement"],
    "staff": ["rude", "conductor", "helpful", "ignored"],
}
FILLER = ("the train from to on monday i was and my family with a very again this is third "
          "time please answer we travel every week thank you station platform evening").split()


def complaints(count, seed):
    rng = random.Random(seed)
    names = list(DESKS)
    texts, labels = [], []
    for _ in range(count):
        label = rng.randrange(len(names))
        words = [rng.choice(FILLER) for _ in range(rng.randint(74, 90))]
        for _ in range(4):
            words[rng.randrange(len(words))] = rng.choice(DESKS[names[label]])
        texts.append(" ".join(words))
        labels.append(label)
    return Dataset.from_dict({"text": texts, "labels": labels})


def make_tokenizer():
    words = sorted(set(FILLER) | {w for group in DESKS.values() for w in group})
    table = {"[PAD]": 0, "[UNK]": 1, **{w: i + 2 for i, w in enumerate(words)}}
    tokenizer = Tokenizer(models.WordLevel(table, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer


def encode(data, tokenizer):
    def ids_of(batch):
        return {"input_ids": [e.ids for e in tokenizer.encode_batch(batch["text"])]}
    return data.map(ids_of, batched=True, remove_columns=["text"])


def collate(items):
    longest = max(len(item["input_ids"]) for item in items)
    rows = [list(item["input_ids"]) + [0] * (longest - len(item["input_ids"])) for item in items]
    ids = tensor(rows)
    return {"input_ids": ids, "attention_mask": (ids != 0).long(),
            "labels": tensor([int(item["labels"]) for item in items])}


def score(answer):
    return {"right": float(np.mean(answer.predictions.argmax(-1) == answer.label_ids))}


def main():
    tokenizer = make_tokenizer()
    train, test = encode(complaints(840, 1), tokenizer), encode(complaints(240, 2), tokenizer)
    config = DistilBertConfig(vocab_size=tokenizer.get_vocab_size(), dim=256, n_layers=4,
                              n_heads=4, hidden_dim=1024, max_position_embeddings=128,
                              num_labels=len(DESKS))
    arguments = TrainingArguments(
        output_dir=WORK, per_device_train_batch_size=32, per_device_eval_batch_size=64,
        num_train_epochs=2, learning_rate=3e-4, eval_strategy="epoch", save_strategy="no",
        logging_steps=20, report_to="none", use_cpu=True, disable_tqdm=True,
        dataloader_pin_memory=False, seed=9)
    trainer = Trainer(model=DistilBertForSequenceClassification(config), args=arguments,
                      train_dataset=train, eval_dataset=test, data_collator=collate,
                      compute_metrics=score)
    result = trainer.train()
    final = trainer.evaluate()
    print(f"{result.global_step} steps, loss {result.training_loss:.3f}, "
          f"right desk {final['eval_right']:.3f}")


if __name__ == "__main__":
    main()
