"""Classifies short genetics notes; the gene symbols are kept whole by the tokenizer."""
import random

import numpy as np
import torch
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, trainers
from torch import nn

SYMBOLS = 4500
NOTES = 9000
WORDS = ("expression of is raised in tissue lowered after mutation binds promoter near "
         "the a loss gain variant carrier family study pathway signal receptor").split()


def make_symbols(rng):
    letters = "ABCDEFGHKLMNPRSTUVXYZ"
    found = {}
    while len(found) < SYMBOLS:
        stem = "".join(rng.choice(letters) for _ in range(rng.randint(3, 5)))
        found[f"{stem}{rng.randint(1, 99)}"] = None
    return list(found)


def make_notes(symbols, rng):
    notes, labels = [], []
    for _ in range(NOTES):
        label = rng.randrange(6)
        group = symbols[label::6]
        words = [rng.choice(WORDS) for _ in range(30)]
        for slot in rng.sample(range(30), 5):
            words[slot] = rng.choice(group)
        notes.append(" ".join(words))
        labels.append(label)
    return notes, torch.tensor(labels)


def build_tokenizer(notes, symbols):
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(vocab_size=1200, special_tokens=["[UNK]"], show_progress=False)
    tokenizer.train_from_iterator(notes[:3000], trainer)
    for symbol in symbols:
        if tokenizer.token_to_id(symbol) is None:
            tokenizer.add_tokens([AddedToken(symbol, single_word=True)])
    return tokenizer


def train(ids, offsets, labels, vocabulary):
    model = nn.Sequential(nn.EmbeddingBag(vocabulary, 96), nn.Linear(96, 256), nn.ReLU(), nn.Linear(256, 6))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    bounds = torch.cat([offsets, torch.tensor([len(ids)])])
    for epoch in range(24):
        correct = 0
        for first in range(0, len(labels), 64):
            last = min(first + 64, len(labels))
            part = ids[bounds[first]:bounds[last]]
            scores = model[1:](model[0](part, bounds[first:last] - bounds[first]))
            loss = nn.functional.cross_entropy(scores, labels[first:last])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            correct += int((scores.argmax(1) == labels[first:last]).sum())
        if epoch % 8 == 7:
            print(f"epoch {epoch + 1}: accuracy {correct / len(labels):.3f}")


def main():
    rng = random.Random(8)
    torch.manual_seed(8)
    symbols = make_symbols(rng)
    notes, labels = make_notes(symbols, rng)
    tokenizer = build_tokenizer(notes, symbols)
    encoded = [e.ids for e in tokenizer.encode_batch(notes)]
    lengths = np.array([len(e) for e in encoded])
    print("vocabulary", tokenizer.get_vocab_size(), "mean length", lengths.mean().round(1))
    ids = torch.tensor([i for e in encoded for i in e])
    offsets = torch.from_numpy(np.concatenate([[0], np.cumsum(lengths)[:-1]]))
    train(ids, offsets, labels, tokenizer.get_vocab_size())


if __name__ == "__main__":
    main()
