"""Assign customs tariff codes to declarations with a head on a language model."""
import numpy as np
import torch
from torch import nn
from transformers import BertConfig, BertModel

VOCAB = 3000
WORDS = 32
CODES = 40
DECLARATIONS = 1800
EPOCHS = 7
BATCH = 60


def declare(rng):
    code = rng.integers(0, CODES, size=DECLARATIONS)
    goods = rng.integers(10, VOCAB, size=(CODES, 12))
    ids = rng.integers(10, VOCAB, size=(DECLARATIONS, WORDS))
    for i, c in enumerate(code):
        spots = rng.choice(np.arange(1, WORDS), 10, replace=False)
        ids[i, spots] = rng.choice(goods[c], 10)
    ids[:, 0] = 2
    return torch.from_numpy(ids), torch.from_numpy(code)


def language_model():
    config = BertConfig(vocab_size=VOCAB, hidden_size=192, num_hidden_layers=4,
                        num_attention_heads=4, intermediate_size=512,
                        max_position_embeddings=WORDS)
    encoder = BertModel(config)
    for p in encoder.parameters():
        p.requires_grad_(False)
    return encoder.eval()


@torch.no_grad()
def describe(encoder, ids):
    hidden = encoder(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
    return torch.cat([hidden.mean(1), hidden.amax(1)], dim=1)


def main():
    torch.manual_seed(90)
    ids, code = declare(np.random.default_rng(90))
    encoder = language_model()
    head = nn.Sequential(nn.Linear(384, 1536), nn.GELU(), nn.Dropout(0.2),
                         nn.Linear(1536, 1536), nn.GELU(), nn.Linear(1536, CODES))
    opt = torch.optim.AdamW(head.parameters(), 1e-3)
    for epoch in range(EPOCHS):
        order = torch.randperm(len(ids))
        total, right = 0.0, 0
        for start in range(0, len(ids), BATCH):
            pick = order[start:start + BATCH]
            features = describe(encoder, ids[pick])
            logits = head(features)
            loss = nn.functional.cross_entropy(logits, code[pick])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(pick)
            right += (logits.argmax(1) == code[pick]).sum().item()
        print(f"epoch {epoch} loss {total / len(ids):.4f} right {right / len(ids):.3f}")


if __name__ == "__main__":
    main()
