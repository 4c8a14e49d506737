"""Distil a larger masked model into a small one with Accelerate; masks are drawn anew for every batch."""
import os
from pathlib import Path

WORK = Path(os.environ.get("TMPDIR", ".")) / "distill"
os.environ.setdefault("HF_HOME", str(WORK / "hf"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForMaskedLM

VOCAB, LENGTH, MASK = 800, 64, 1


def bert(layers, hidden, heads):
    return BertForMaskedLM(BertConfig(vocab_size=VOCAB, hidden_size=hidden, num_hidden_layers=layers,
                                      num_attention_heads=heads, intermediate_size=3 * hidden,
                                      max_position_embeddings=LENGTH))


def corpus(n=2048, seed=9):
    rng = np.random.default_rng(seed)
    step = rng.integers(1, 40, (n, 1))
    start = rng.integers(2, VOCAB, (n, 1))
    ids = (start + step * np.arange(LENGTH)) % (VOCAB - 2) + 2
    return torch.from_numpy(ids)


def mask_tokens(ids, gen):
    chosen = torch.rand(ids.shape, generator=gen) < 0.2
    return torch.where(chosen, torch.full_like(ids, MASK), ids), chosen


def main(epochs=2, temperature=2.0):
    set_seed(19)
    acc = Accelerator(cpu=True, gradient_accumulation_steps=2)
    teacher, student = bert(3, 256, 4), bert(2, 128, 4)
    teacher.requires_grad_(False).eval()
    opt = torch.optim.AdamW(student.parameters(), lr=1e-3)
    loader = DataLoader(corpus(), batch_size=32, shuffle=True)
    student, opt, loader = acc.prepare(student, opt, loader)
    gen = torch.Generator().manual_seed(5)
    trace = []
    for epoch in range(epochs):
        for ids in loader:
            with acc.accumulate(student):
                seen, chosen = mask_tokens(ids, gen)
                with torch.inference_mode():
                    goal = F.log_softmax(teacher(input_ids=seen).logits / temperature, -1)
                goal = goal.clone()
                out = F.log_softmax(student(input_ids=seen).logits / temperature, -1)
                kd = F.kl_div(out, goal, reduction="none", log_target=True).sum(-1).mean()
                ce = F.nll_loss(out[chosen], ids[chosen])
                loss = 50 * kd + ce
                acc.backward(loss)
                opt.step()
                opt.zero_grad()
            trace.append(ce.detach())
        acc.print(f"epoch {epoch}: masked loss {torch.stack(trace[-32:]).mean():.3f}", flush=True)
    acc.wait_for_everyone()
    acc.save_model(student, str(WORK / "student"))


if __name__ == "__main__":
    main()
