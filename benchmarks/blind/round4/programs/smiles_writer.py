"""Train a character GPT on SMILES-like strings, then write candidate molecules."""
import os

os.environ.setdefault("HF_HOME", os.path.abspath("hf_home"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import torch
from transformers import GenerationConfig, GPT2Config, GPT2LMHeadModel

ALPHABET = ["<pad>", "<end>"] + list("CNOSFPcnos()[]=#123456+-@H/\\BrIl")
INDEX = {c: i for i, c in enumerate(ALPHABET)}
CONTEXT = 192
FRAGMENTS = ["CC(=O)O", "c1ccccc1", "N[C@@H](C)", "C#N", "OC(F)(F)F", "S(=O)(=O)N", "c1ccncc1", "CCO", "C1CCNCC1", "C(=O)N"]


def library(count, length):
    rng = np.random.default_rng(44)
    lines = []
    for _ in range(count):
        text = ""
        while len(text) < length:
            text += FRAGMENTS[rng.integers(len(FRAGMENTS))]
        lines.append([INDEX[c] for c in text[:length]])
    return torch.tensor(lines)


def train(model, strings, steps, batch):
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    draw = torch.Generator().manual_seed(5)
    model.train()
    for step in range(steps):
        ids = strings[torch.randint(len(strings), (batch,), generator=draw)]
        loss = model(input_ids=ids, labels=ids).loss
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 8 == 0:
            print(f"step {step}: loss {loss.item():.2f}", flush=True)


def write(model, prompts):
    model.eval()
    settings = GenerationConfig(
        max_new_tokens=130, min_new_tokens=130, do_sample=False, use_cache=False, pad_token_id=0, eos_token_id=1,
    )
    ids = torch.tensor([[INDEX[c] for c in p] for p in prompts])
    with torch.inference_mode():
        out = model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=settings)
    return ["".join(ALPHABET[i] for i in row.tolist()) for row in out]


def main():
    torch.manual_seed(2)
    config = GPT2Config(
        vocab_size=len(ALPHABET), n_positions=CONTEXT, n_embd=160, n_layer=4, n_head=5,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=1, eos_token_id=1, pad_token_id=0,
    )
    model = GPT2LMHeadModel(config)
    train(model, library(3000, 64), steps=36, batch=24)
    prompts = ["CC(=O)Oc", "c1ccccc1", "N[C@@H](", "C#NCCOC(", "OC(F)(F)", "S(=O)(=O", "c1ccncc1", "CCOCCOC1", "C1CCNCC1", "C(=O)NCC",
               "C#NC(=O)", "CCOS(=O)"]
    molecules = write(model, prompts)
    closed = sum(m.count("(") == m.count(")") for m in molecules)
    rings = np.mean([m.count("1") / 2 for m in molecules])
    print(f"{len(molecules)} candidates of {len(molecules[0])} symbols, {closed} with balanced brackets, {rings:.1f} rings each")


if __name__ == "__main__":
    main()
