"""Train a small GPT-2 on made-up abstracts and let it continue some of them."""
import os

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel

VOCAB = 2000
CONTEXT = 256
TRAIN_STEPS = 24
PROMPT = 32
NEW_TOKENS = 150


def make_corpus(rng, n):
    """Topic chains: a word is followed by one of a few words of its topic."""
    follow = rng.integers(10, VOCAB, (VOCAB, 4))
    text = np.empty((n, 128), np.int64)
    text[:, 0] = rng.integers(10, VOCAB, n)
    for position in range(1, 128):
        choice = rng.choice(4, n, p=[0.7, 0.15, 0.1, 0.05])
        text[:, position] = follow[text[:, position - 1], choice]
    return torch.from_numpy(text), follow


def make_model():
    config = GPT2Config(
        vocab_size=VOCAB,
        n_positions=CONTEXT,
        n_embd=256,
        n_layer=4,
        n_head=4,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=2,
    )
    return GPT2LMHeadModel(config)


def train(model, corpus):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model.train()
    for step in range(TRAIN_STEPS):
        batch = corpus[step * 8 : step * 8 + 8]
        loss = model(input_ids=batch, labels=batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % 6 == 0:
            print(f"step {step + 1:3d}  loss {loss.item():.3f}", flush=True)


def continue_texts(model, prompts):
    model.eval()
    with torch.no_grad():
        return model.generate(
            prompts,
            attention_mask=torch.ones_like(prompts),
            max_new_tokens=NEW_TOKENS,
            min_new_tokens=NEW_TOKENS,
            do_sample=False,
            use_cache=False,
            pad_token_id=2,
        )


def main():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    corpus, follow = make_corpus(rng, TRAIN_STEPS * 8 + 8)
    model = make_model()
    train(model, corpus[:-8])
    texts = continue_texts(model, corpus[-8:, :PROMPT]).numpy()
    before, after = texts[:, PROMPT - 1 : -1], texts[:, PROMPT:]
    plausible = (follow[before] == after[..., None]).any(-1).mean()
    print(f"{after.size} words written, {100 * plausible:.1f} % follow the chains")


if __name__ == "__main__":
    main()
