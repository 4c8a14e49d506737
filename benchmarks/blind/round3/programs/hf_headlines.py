"""Train a small causal model on template headlines, then write continuations for the held-out ones."""
import os
from pathlib import Path

HOME = Path(os.environ.get("TMPDIR", ".")) / "headlines"
os.environ.setdefault("HF_HOME", str(HOME / "hf"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader
from transformers import GenerationConfig, GPT2Config, GPT2LMHeadModel, get_cosine_schedule_with_warmup

VOCAB, LINE, PROMPT = 400, 72, 12
STEPS, BATCH = 60, 32


def headline_stream(n, seed):
    """Every word has one usual follower; two in a hundred are random."""
    table = np.random.default_rng(77).integers(1, VOCAB, (VOCAB,))
    rng = np.random.default_rng(seed)
    out = np.empty((n, LINE), np.int64)
    out[:, 0] = rng.integers(1, VOCAB, n)
    for t in range(1, LINE):
        follow = table[out[:, t - 1]]
        out[:, t] = np.where(rng.random(n) < 0.02, rng.integers(1, VOCAB, n), follow)
    return torch.from_numpy(out)


def build_model():
    config = GPT2Config(vocab_size=VOCAB, n_positions=128, n_embd=192, n_layer=4, n_head=4, resid_pdrop=0.0,
                        embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0, pad_token_id=0,
                        use_cache=False)
    return GPT2LMHeadModel(config)


def train(acc, model, lines):
    loader = DataLoader(lines, batch_size=BATCH, shuffle=True, drop_last=True)
    opt = torch.optim.AdamW(model.parameters(), lr=1.5e-3, weight_decay=0.01)
    sched = get_cosine_schedule_with_warmup(opt, 10, STEPS)
    model, opt, loader, sched = acc.prepare(model, opt, loader, sched)
    model.train()
    done = 0
    while done < STEPS:
        for batch in loader:
            loss = model(input_ids=batch, labels=batch).loss
            acc.backward(loss)
            acc.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            opt.zero_grad()
            done += 1
            if done == STEPS:
                break
    return model, loss.item()


@torch.no_grad()
def continue_lines(model, lines, batch=32):
    model.eval()
    how = GenerationConfig(max_new_tokens=LINE - PROMPT, do_sample=False, use_cache=False,
                           pad_token_id=0, bos_token_id=0, eos_token_id=None)
    written = []
    for i in range(0, len(lines), batch):
        prompt = lines[i:i + batch, :PROMPT]
        written.append(model.generate(prompt, attention_mask=torch.ones_like(prompt), generation_config=how))
    return torch.cat(written)


def main():
    set_seed(31)
    acc = Accelerator(cpu=True)
    model, loss = train(acc, build_model(), headline_stream(1600, 1))
    held_out = headline_stream(128, 2)
    text = continue_lines(acc.unwrap_model(model), held_out)
    table = np.random.default_rng(77).integers(1, VOCAB, (VOCAB,))
    body = text[:, PROMPT - 1:].numpy()
    follows = (table[body[:, :-1]] == body[:, 1:]).mean()
    print(f"training loss {loss:.2f}; {len(text)} headlines, {follows:.0%} of the words follow the chain")


if __name__ == "__main__":
    main()
