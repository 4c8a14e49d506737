"""Fine-tune a small BERT on clauses of contracts, tokenised once beforehand."""
import os

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "true"

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch import nn
from transformers import BertConfig, BertForSequenceClassification

KINDS = ("liability", "payment", "notice", "term")
N_CLAUSES = 1600
BATCH = 16
STEPS = 64


def write_clauses(rng):
    common = [f"word{i}" for i in range(900)]
    special = [[f"{kind}{i}" for i in range(60)] for kind in KINDS]
    texts, labels = [], rng.integers(0, len(KINDS), N_CLAUSES)
    for label in labels:
        length = int(np.clip(rng.gamma(6.0, 9.0), 12, 120))
        words = [common[i] for i in rng.integers(0, 900, length)]
        for place in rng.integers(0, length, 4):
            words[place] = special[label][int(rng.integers(60))]
        texts.append(" ".join(words))
    return texts, labels


def tokenise(texts):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.train_from_iterator(
        texts, trainers.WordPieceTrainer(vocab_size=2000, special_tokens=["[PAD]", "[UNK]"])
    )
    return [entry.ids for entry in tokenizer.encode_batch(texts)], tokenizer.get_vocab_size()


def make_batches(ids, labels, rng):
    """Clauses of similar length share a batch and are padded to its longest one."""
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    batches = []
    for first in range(0, len(order), BATCH):
        group = order[first : first + BATCH]
        tokens = torch.zeros(len(group), max(len(ids[i]) for i in group), dtype=torch.long)
        for row, i in enumerate(group):
            tokens[row, : len(ids[i])] = torch.tensor(ids[i])
        batches.append((tokens, torch.from_numpy(labels[group])))
    return [batches[i] for i in rng.permutation(len(batches))]


def main():
    torch.manual_seed(5)
    rng = np.random.default_rng(5)
    texts, labels = write_clauses(rng)
    ids, vocab = tokenise(texts)
    batches = make_batches(ids, labels, rng)
    config = BertConfig(
        vocab_size=vocab, hidden_size=256, num_hidden_layers=4, num_attention_heads=4,
        intermediate_size=1024, max_position_embeddings=512, num_labels=len(KINDS), pad_token_id=0,
    )
    model = BertForSequenceClassification(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    model.train()
    recent = []
    for step in range(STEPS):
        tokens, label = batches[step]
        output = model(input_ids=tokens, attention_mask=(tokens != 0).long())
        loss = nn.functional.cross_entropy(output.logits, label)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        recent.append(loss.item())
        if (step + 1) % 16 == 0:
            print(f"step {step + 1:3d}  loss {np.mean(recent[-16:]):.4f}", flush=True)
    print(f"{len(texts)} clauses, {sum(map(len, ids))} tokens, {vocab} word pieces")


if __name__ == "__main__":
    main()
