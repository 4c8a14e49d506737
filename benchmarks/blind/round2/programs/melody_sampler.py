"""Trains a tiny GPT on note sequences and writes continuations of opening bars."""
import numpy as np
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.utils import logging as hf_logging

hf_logging.set_verbosity_error()
NOTES = 128
BAR = 64


def corpus(n):
    rng = np.random.default_rng(314)
    scale = np.array([0, 2, 4, 5, 7, 9, 11])
    key = rng.integers(0, 12, n)[:, None]
    degree = np.cumsum(rng.integers(-2, 3, (n, BAR)), axis=1)
    pitch = 60 + key + scale[degree % 7] + 12 * ((degree // 7) % 3 - 1)
    return torch.from_numpy(pitch.clip(1, NOTES - 1)).long()


def build():
    torch.manual_seed(2)
    cfg = GPT2Config(vocab_size=NOTES, n_positions=320, n_embd=192, n_layer=4, n_head=6,
                     resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
                     bos_token_id=0, eos_token_id=None, pad_token_id=0)
    model = GPT2LMHeadModel(cfg)
    model.config.use_cache = False
    model.generation_config.use_cache = False
    return model


def fit(acc, model, notes, epochs):
    loader = DataLoader(TensorDataset(notes), batch_size=32, shuffle=True,
                        generator=torch.Generator().manual_seed(6))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, opt, loader = acc.prepare(model, opt, loader)
    model.train()
    for _ in range(epochs):
        for (ids,) in loader:
            out = model(input_ids=ids, labels=ids)
            acc.backward(out.loss)
            opt.step()
            opt.zero_grad()
    return model, out.loss.item()


@torch.no_grad()
def continue_bars(model, starts, length):
    model.eval()
    pieces = []
    for chunk in starts.split(4):
        full = model.generate(chunk, attention_mask=torch.ones_like(chunk), do_sample=False,
                              max_new_tokens=length, min_new_tokens=length)
        pieces.append(full[:, chunk.shape[1]:])
    return torch.cat(pieces)


def main():
    acc = Accelerator(cpu=True)
    notes = corpus(1600)
    model, loss = fit(acc, build(), notes, epochs=2)
    music = continue_bars(acc.unwrap_model(model), notes[:12, :24], 220)
    leaps = (music[:, 1:] - music[:, :-1]).abs().float()
    print(f"training loss {loss:.3f}")
    print(f"{music.numel()} notes written, mean leap {leaps.mean():.2f}, distinct pitches {music.unique().numel()}")


if __name__ == "__main__":
    main()
