"""A small GPT-2 learns the words of sea shanties and writes a few verses."""
import random

import torch
from transformers import GPT2Config, GPT2LMHeadModel

HEAVE = ["heave", "haul", "pull", "roll", "stamp", "row", "blow", "sway"]
CREW = ["bullies", "boys", "lads", "johnny", "sally", "captain", "bosun", "cook"]
THING = ["anchor", "bowline", "capstan", "topsail", "whale", "rum", "wind", "tide"]
PLACE = ["liverpool", "mobile", "sydney", "cardiff", "bergen", "santiago", "leith", "cork"]
CONTEXT, TRAIN_STEPS, BATCH = 64, 24, 16
VERSES, VERSE_TOKENS = 8, 220


def shanty(rng):
    lines = []
    for _ in range(4):
        lines.append(f"oh {rng.choice(HEAVE)} away the {rng.choice(THING)} my {rng.choice(CREW)}")
        lines.append(f"and we are bound for {rng.choice(PLACE)} oh")
    return "\n".join(lines) + "\n\n"


def corpus(seed, songs=600):
    rng = random.Random(seed)
    text = "".join(shanty(rng) for _ in range(songs))
    letters = sorted(set(text))
    code = {c: i + 1 for i, c in enumerate(letters)}
    ids = torch.tensor([code[c] for c in text], dtype=torch.long)
    return ids, code, {i: c for c, i in code.items()}


def train(model, ids):
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    gen = torch.Generator().manual_seed(8)
    model.train()
    for step in range(TRAIN_STEPS):
        start = torch.randint(0, len(ids) - CONTEXT - 1, (BATCH,), generator=gen)
        batch = torch.stack([ids[s:s + CONTEXT] for s in start.tolist()])
        loss = model(input_ids=batch, labels=batch).loss
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


@torch.no_grad()
def write(model, code, letters):
    model.eval()
    prompt = torch.tensor([[code[c] for c in "oh heave"]] * VERSES)
    out = model.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        do_sample=True,
        top_k=20,
        min_new_tokens=VERSE_TOKENS,
        max_new_tokens=VERSE_TOKENS,
        use_cache=False,
        pad_token_id=0,
    )
    return ["".join(letters.get(i, "?") for i in row) for row in out.tolist()]


def main():
    torch.manual_seed(2)
    ids, code, letters = corpus(17)
    config = GPT2Config(
        vocab_size=len(code) + 1, n_positions=256, n_embd=192, n_layer=4, n_head=6,
        bos_token_id=0, eos_token_id=0, pad_token_id=0,
    )
    model = GPT2LMHeadModel(config)
    loss = train(model, ids)
    print(f"letters {len(code)}, text {len(ids)}, last loss {loss:.3f}")
    verses = write(model, code, letters)
    print("verses", len(verses), "of", len(verses[0]), "letters")
    print(verses[0][:70].replace("\n", " / "))


if __name__ == "__main__":
    main()
