"""Fit a small GPT-2 to invented hymn lines and write sixteen hymns of three hundred words."""
import random

import torch
from transformers import GPT2Config, GPT2LMHeadModel

SUBJECTS = ["the morning", "a river", "the hill", "our song", "the night", "a lantern"]
VERBS = ["rises", "sings", "waits", "shines", "calls", "turns"]
PLACES = ["over the water", "in the valley", "by the old door", "above the sea", "in the field"]
ENDINGS = ["and we rejoice", "and none is lost", "until the day", "for ever more"]
ROW, HYMNS, WORDS = 96, 16, 300


def verse(rng):
    lines = [f"{rng.choice(SUBJECTS)} {rng.choice(VERBS)} {rng.choice(PLACES)} , "
             f"{rng.choice(ENDINGS)} ;" for _ in range(4)]
    return " ".join(lines) + " amen ."


def corpus(seed, count):
    rng = random.Random(seed)
    words = " ".join(verse(rng) for _ in range(count)).split()
    vocabulary = {word: i + 2 for i, word in enumerate(sorted(set(words)))}
    ids = torch.tensor([vocabulary[word] for word in words])
    return ids[:len(ids) // ROW * ROW].view(-1, ROW), vocabulary


def fit(model, rows, steps):
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4)
    picker = torch.Generator().manual_seed(3)
    for step in range(steps):
        batch = rows[torch.randint(0, len(rows), (12,), generator=picker)]
        loss = model(input_ids=batch, labels=batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 8 == 0:
            print(f"step {step:2d}: loss {loss.item():.3f}")


def compose(model, vocabulary):
    names = {number: word for word, number in vocabulary.items()}
    starts = [vocabulary[SUBJECTS[k % len(SUBJECTS)].split()[-1]] for k in range(HYMNS)]
    prompt = torch.tensor(starts)[:, None]
    model.eval()
    with torch.inference_mode():
        out = model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=True,
                             top_k=12, temperature=0.9, max_new_tokens=WORDS, pad_token_id=0)
    return [[names.get(int(i), "_") for i in row] for row in out]


def main():
    rows, vocabulary = corpus(8, 900)
    torch.manual_seed(13)
    config = GPT2Config(vocab_size=len(vocabulary) + 2, n_positions=320, n_embd=320, n_layer=6,
                        n_head=5, bos_token_id=1, eos_token_id=1, pad_token_id=0)
    model = GPT2LMHeadModel(config)
    fit(model, rows, 25)
    hymns = compose(model, vocabulary)
    print(f"{len(hymns)} hymns, {sum(map(len, hymns))} words")
    print(" ".join(hymns[0][:24]))
    print("amens:", sum(hymn.count("amen") for hymn in hymns))


if __name__ == "__main__":
    main()
