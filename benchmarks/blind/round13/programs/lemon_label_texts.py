"""Sort the texts of fruit crate labels by exporting region."""
import os
import tempfile

import datasets
import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch import nn
from torch.utils.data import DataLoader

TEXTS = 1300
REGIONS = 6
MAX_LEN = 192
EPOCHS = 3


def make_texts(seed):
    rng = np.random.default_rng(seed)
    parts = ["ci", "tro", "li", "mo", "ne", "sal", "va", "gran", "te", "do", "ri", "za", "pu", "ber", "na"]
    words = ["".join(rng.choice(parts, rng.integers(2, 6))) for _ in range(7000)]
    labels = rng.integers(0, REGIONS, TEXTS)
    texts = []
    for label in labels:
        common = rng.integers(0, 7000, rng.integers(10, 24))
        typical = rng.integers(0, 60, 5) + 60 * label
        picks = rng.permutation(np.concatenate([common, typical]))
        texts.append(" ".join(words[k] for k in picks))
    return texts, labels.tolist()


def train_tokenizer(texts, path):
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(
        vocab_size=9000, special_tokens=["[PAD]", "[UNK]"], show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.save(path)
    return tokenizer.get_vocab_size()


def encode(row, path):
    tokenizer = Tokenizer.from_file(path)
    return {"ids": tokenizer.encode(row["text"]).ids[:MAX_LEN]}


def collate(rows):
    width = MAX_LEN
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    for k, row in enumerate(rows):
        ids[k, : len(row["ids"])] = torch.tensor(row["ids"])
    return ids, torch.tensor([row["label"] for row in rows])


class LabelNet(nn.Module):
    def __init__(self, vocab):
        super().__init__()
        self.embed = nn.Embedding(vocab, 64, padding_idx=0)
        layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(64, REGIONS)

    def forward(self, ids):
        empty = ids == 0
        states = self.encoder(self.embed(ids), src_key_padding_mask=empty)
        states = states.masked_fill(empty[..., None], 0.0)
        return self.head(states.sum(1) / (~empty).sum(1, keepdim=True))


def main():
    torch.manual_seed(1)
    torch.set_num_threads(2)
    datasets.disable_progress_bars()
    texts, labels = make_texts(30)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "labels.json")
        vocab = train_tokenizer(texts, path)
        table = datasets.Dataset.from_dict({"text": texts, "label": labels})
        table = table.map(encode, fn_kwargs={"path": path}, remove_columns=["text"])
    print(f"vocabulary {vocab} longest {max(len(ids) for ids in table['ids'])}", flush=True)
    loader = DataLoader(table, batch_size=32, shuffle=True, collate_fn=collate)
    net = LabelNet(vocab)
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(EPOCHS):
        right = 0
        for ids, label in loader:
            out = net(ids)
            loss = nn.functional.cross_entropy(out, label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += int((out.argmax(1) == label).sum())
        print(f"epoch {epoch}: accuracy {right / TEXTS:.3f}", flush=True)


if __name__ == "__main__":
    main()
