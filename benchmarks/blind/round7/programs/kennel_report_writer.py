"""Train a tiny GPT-2 on kennel inspection shorthand, then draft reports with it."""
import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel

CODES, CONTEXT, STEPS, DRAFTS, LENGTH = 1500, 256, 16, 6, 160


def shorthand(rng, rows, length):
    """A second-order Markov chain over inspection codes."""
    text = np.empty((rows, length), dtype=np.int64)
    text[:, :2] = rng.integers(2, CODES, (rows, 2))
    for t in range(2, length):
        step = (3 * text[:, t - 1] + text[:, t - 2] + rng.integers(0, 6, rows)) % (CODES - 2)
        text[:, t] = step + 2
    return torch.from_numpy(text)


def train(model, rng):
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4)
    model.train()
    for step in range(1, STEPS + 1):
        batch = shorthand(rng, 6, 64)
        loss = model(input_ids=batch, labels=batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 8 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


@torch.no_grad()
def draft(model, prompts):
    model.eval()
    return model.generate(
        prompts, attention_mask=torch.ones_like(prompts),
        max_new_tokens=LENGTH, min_new_tokens=LENGTH,
        do_sample=True, top_k=40, temperature=0.9,
        use_cache=False,
        pad_token_id=0)


def main():
    torch.manual_seed(19)
    rng = np.random.default_rng(19)
    model = GPT2LMHeadModel(GPT2Config(
        vocab_size=CODES, n_positions=CONTEXT, n_embd=256, n_layer=6, n_head=8,
        bos_token_id=0, eos_token_id=1))
    train(model, rng)
    drafts = []
    for kennel in range(2):
        drafts.append(draft(model, shorthand(rng, DRAFTS // 2, 16)))
    drafts = torch.cat(drafts)
    distinct = [len(torch.unique(row)) for row in drafts]
    print(f"{len(drafts)} drafts of {drafts.shape[1]} codes, "
          f"{np.mean(distinct):.1f} distinct codes each")


if __name__ == "__main__":
    main()
