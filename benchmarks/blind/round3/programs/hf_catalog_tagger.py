"""Tag attributes (brand, colour, size, material) in product titles; token classification with the Trainer."""
import os
from pathlib import Path

WORK = Path(os.environ.get("TMPDIR", ".")) / "catalog_tagger"
os.environ.setdefault("HF_HOME", str(WORK / "hf"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import torch
from datasets import Dataset
from transformers import BertConfig, BertForTokenClassification, Trainer, TrainingArguments, set_seed

TAGS = ["O", "B-BRAND", "I-BRAND", "B-COLOUR", "B-SIZE", "B-MATERIAL", "I-MATERIAL"]
VOCAB, LENGTH = 3000, 48


def make_titles(n, seed):
    """Token ids below 600 carry attributes, everything else is filler; some ids are ambiguous."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(600, VOCAB, (n, LENGTH))
    tags = np.zeros((n, LENGTH), np.int64)
    for row in range(n):
        for kind, (first, cont, low, high) in enumerate([(1, 2, 10, 200), (3, 3, 200, 260), (4, 4, 260, 330), (5, 6, 330, 600)]):
            at = int(rng.integers(1, LENGTH - 3))
            span = 2 if cont != first and rng.random() < 0.6 else 1
            for j in range(span):
                ids[row, at + j] = rng.integers(low, high)
                tags[row, at + j] = first if j == 0 else cont
    length = rng.integers(LENGTH // 2, LENGTH + 1, n)
    mask = (np.arange(LENGTH)[None] < length[:, None]).astype(np.int64)
    labels = np.where(mask == 1, tags, -100)
    return Dataset.from_dict({"input_ids": ids * mask, "attention_mask": mask, "labels": labels}).with_format("torch")


def spans(seq):
    found, start, kind = set(), None, None
    for i, tag in enumerate(list(seq) + ["O"]):
        if tag.startswith("B-") or tag == "O" or (kind and tag[2:] != kind):
            if kind is not None:
                found.add((start, i, kind))
            start, kind = (i, tag[2:]) if tag.startswith("B-") else (None, None)
    return found


def entity_scores(pred):
    logits, labels = pred.predictions, pred.label_ids
    hit = guessed = real = 0
    for i in range(labels.shape[0]):
        truth, guess = [], []
        for j in range(labels.shape[1]):
            if labels[i, j] == -100:
                continue
            best = torch.softmax(torch.tensor(logits[i, j]), dim=-1).argmax().item()
            truth.append(TAGS[labels[i, j]])
            guess.append(TAGS[best])
        a, b = spans(truth), spans(guess)
        hit, real, guessed = hit + len(a & b), real + len(a), guessed + len(b)
    return {"f1": 2 * hit / max(real + guessed, 1)}


def main():
    set_seed(4)
    train, held_out = make_titles(1200, 1), make_titles(1500, 2)
    config = BertConfig(vocab_size=VOCAB, hidden_size=96, num_hidden_layers=4, num_attention_heads=4,
                        intermediate_size=384, max_position_embeddings=LENGTH, num_labels=len(TAGS),
                        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model = BertForTokenClassification(config)
    args = TrainingArguments(
        output_dir=str(WORK), num_train_epochs=5, per_device_train_batch_size=32, per_device_eval_batch_size=100,
        learning_rate=1e-3, warmup_steps=40, gradient_checkpointing=True, eval_strategy="epoch", save_strategy="no",
        logging_strategy="no", report_to="none", use_cpu=True, disable_tqdm=True, seed=4)
    trainer = Trainer(model=model, args=args, train_dataset=train, eval_dataset=held_out,
                      compute_metrics=entity_scores)
    trainer.train()
    curve = [h["eval_f1"] for h in trainer.state.log_history if "eval_f1" in h]
    print("entity F1 per epoch:", " ".join(f"{f:.2f}" for f in curve))


if __name__ == "__main__":
    main()
