"""Vectors for the abstracts of a grant archive, for a search by similarity.

The abstracts are already split into word pieces; a transformer encoder gives
one mean-pooled, normalised vector for each of them.
"""
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from transformers import BertConfig, BertModel

device = "cuda" if torch.cuda.is_available() else "cpu"

VOCABULARY = 30000
MAX_TOKENS = 512
BATCH = 64
ABSTRACTS = 6400


def make_abstracts(seed=21):
    rng = np.random.default_rng(seed)
    lengths = np.clip(rng.lognormal(4.2, 0.35, ABSTRACTS), 12, 180).astype(int)
    abstracts = [rng.integers(1000, VOCABULARY, n, dtype=np.int64) for n in lengths]
    abstracts[17] = rng.integers(1000, VOCABULARY, 700, dtype=np.int64)
    return abstracts


def collate(abstracts):
    clipped = [a[:MAX_TOKENS] for a in abstracts]
    tokens = np.zeros((len(clipped), MAX_TOKENS), dtype=np.int64)
    mask = np.zeros_like(tokens)
    for row, pieces in enumerate(clipped):
        tokens[row, :len(pieces)] = pieces
        mask[row, :len(pieces)] = 1
    return torch.from_numpy(tokens), torch.from_numpy(mask)


def build_encoder():
    torch.manual_seed(21)
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        max_position_embeddings=MAX_TOKENS,
    )
    model = BertModel(config, add_pooling_layer=False).eval().to(device)
    return model.to(torch.bfloat16)


@torch.inference_mode()
def embed(model, abstracts):
    tokens, mask = collate(abstracts)
    tokens = tokens.to(device)
    mask = mask.to(device)
    states = model(input_ids=tokens, attention_mask=mask).last_hidden_state
    weight = mask.unsqueeze(-1).to(states.dtype)
    mean = (states * weight).sum(1).float() / weight.sum(1).float()
    return F.normalize(mean, dim=1).cpu().numpy()


def main():
    budget_s = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    abstracts = make_abstracts()
    model = build_encoder()
    vectors = np.zeros((ABSTRACTS, 768), np.float32)

    start = time.perf_counter()
    batches = 0
    while time.perf_counter() - start < budget_s:
        first = (batches * BATCH) % ABSTRACTS
        vectors[first:first + BATCH] = embed(model, abstracts[first:first + BATCH])
        batches += 1

    closest = float((vectors[1:BATCH] @ vectors[0]).max())
    print(f"done: {batches} batches, {batches * BATCH} abstracts, closest to the first {closest:.4f}")


if __name__ == "__main__":
    main()
