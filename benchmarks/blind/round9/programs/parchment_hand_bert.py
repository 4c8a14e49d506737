"""Dates the hand of parchment charters from their abbreviations with a small BERT."""
import os

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import BertConfig, BertForSequenceClassification, set_seed

CHARTERS, SIGNS, CENTURIES, BATCH, EPOCHS = 2400, 900, 5, 32, 2


def charters(rng):
    texts, century = [], rng.integers(0, CENTURIES, CHARTERS)
    for when in century:
        length = int(np.clip(rng.lognormal(3.9, 0.5), 12, 180))
        signs = rng.integers(10, SIGNS, length)
        marks = rng.random(length) < 0.15
        signs[marks] = 10 + 30 * when + rng.integers(0, 30, marks.sum())
        texts.append(torch.from_numpy(signs))
    return texts, torch.from_numpy(century)


def batches(texts, rng):
    lengths = np.array([len(t) for t in texts])
    order = np.argsort(lengths + rng.uniform(0, 3, len(lengths)))
    groups = [order[i:i + BATCH] for i in range(0, len(order), BATCH)]
    for number in rng.permutation(len(groups)):
        yield groups[number]


def main():
    set_seed(50)
    rng = np.random.default_rng(50)
    texts, century = charters(rng)
    model = BertForSequenceClassification(
        BertConfig(
            vocab_size=SIGNS, hidden_size=128, num_hidden_layers=3, num_attention_heads=4,
            intermediate_size=384, max_position_embeddings=200, num_labels=CENTURIES,
        )
    )
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4)
    for epoch in range(EPOCHS):
        losses, hits = [], 0
        for rows in batches(texts, rng):
            signs = pad_sequence([texts[r] for r in rows], batch_first=True)
            labels = century[torch.from_numpy(rows)]
            out = model(input_ids=signs, attention_mask=(signs > 0).long(), labels=labels)
            optimizer.zero_grad()
            out.loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(out.loss.item())
            hits += int((out.logits.argmax(1) == labels).sum())
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.3f}, accuracy {hits / CHARTERS:.3f}")


if __name__ == "__main__":
    main()
