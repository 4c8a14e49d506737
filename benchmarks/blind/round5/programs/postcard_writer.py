"""Train a very small GPT-2 on invented holiday postcards and let it write new ones."""
import random

import torch
from transformers import GPT2Config, GPT2LMHeadModel

PLACES = ["harbour", "island", "valley", "market", "castle", "lagoon", "village", "pass"]
FEELINGS = ["quiet", "sunny", "crowded", "windy", "lovely", "cold", "golden", "noisy"]
FRIENDS = ["anna", "piotr", "mei", "luis", "grandma", "tom", "ingrid", "omar"]
MEALS = ["soup", "grilled fish", "plum cake", "noodles", "warm bread", "figs", "stew"]
LENGTH = 72
WRITING = dict(max_new_tokens=190, do_sample=False, num_beams=1, use_cache=False,
               pad_token_id=0)


def postcard(rng):
    first, second = rng.sample(PLACES, 2)
    return (f"dear {rng.choice(FRIENDS)} , the {first} is {rng.choice(FEELINGS)} today and we "
            f"had {rng.choice(MEALS)} near the {second} . tomorrow we walk to the "
            f"{rng.choice(PLACES)} . it is {rng.choice(FEELINGS)} here , love .")


def make_vocabulary(cards):
    words = sorted({word for card in cards for word in card.split()})
    return {word: number + 2 for number, word in enumerate(words)}


def stream(cards, vocabulary):
    ids = [vocabulary[word] for card in cards for word in card.split()]
    usable = len(ids) // LENGTH * LENGTH
    return torch.tensor(ids[:usable]).view(-1, LENGTH)


def build(vocabulary):
    config = GPT2Config(vocab_size=len(vocabulary) + 2, n_positions=256, n_embd=256, n_layer=4,
                        n_head=4, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
                        bos_token_id=1, eos_token_id=1, pad_token_id=0)
    return GPT2LMHeadModel(config)


def train(model, rows, steps):
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    picker = torch.Generator().manual_seed(4)
    for step in range(steps):
        batch = rows[torch.randint(0, len(rows), (12,), generator=picker)]
        loss = model(input_ids=batch, labels=batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 15 == 0:
            print(f"step {step:3d}: loss {loss.item():.3f}")


def write(model, vocabulary, friends):
    words = {number: word for word, number in vocabulary.items()}
    start = [[vocabulary["dear"], vocabulary[name], vocabulary[","]] for name in friends]
    prompt = torch.tensor(start)
    model.eval()
    with torch.no_grad():
        out = model.generate(prompt, attention_mask=torch.ones_like(prompt), **WRITING)
    return [" ".join(words.get(int(i), "_") for i in row) for row in out]


def main():
    rng = random.Random(17)
    cards = [postcard(rng) for _ in range(2500)]
    vocabulary = make_vocabulary(cards)
    rows = stream(cards, vocabulary)
    torch.manual_seed(2)
    model = build(vocabulary)
    train(model, rows, 46)
    written = write(model, vocabulary, FRIENDS)
    print(f"{len(written)} cards of {len(written[0].split())} words")
    print(written[0][:150])
    print("places named:", sum(place in card for place in PLACES for card in written))


if __name__ == "__main__":
    main()
