"""Teach a small GPT-2 the letters of lullabies and let it sing new ones."""
import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel

LETTERS = "~abcdefghijklmnopqrstuvwxyz ,.\n"
SPAN = 96
BATCH = 24
STEPS = 45
SONGS = 16
LENGTH = 440

LINES = ["sleep my little one, the moon is high", "the wind is humming in the tree",
         "hush now, the lambs are lying down", "a boat of silver on the sea",
         "the stars will watch until the day", "and mother sings a song for thee",
         "close your eyes, the night is deep", "the river rocks the hills to sleep"]


def make_stream(seed=47):
    rng = np.random.default_rng(seed)
    text = ".\n".join(LINES[i] for i in rng.integers(0, len(LINES), 3000))
    code = {letter: number for number, letter in enumerate(LETTERS)}
    return torch.tensor([code[letter] for letter in text])


def train(model, stream):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    offsets = torch.arange(SPAN)
    for step in range(STEPS):
        begin = torch.randint(len(stream) - SPAN, (BATCH, 1))
        window = stream[begin + offsets]
        loss = model(input_ids=window, labels=window).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 15 == 0 or step == STEPS - 1:
            print(f"step {step} loss {loss.item():.4f}")


def main():
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=len(LETTERS), n_positions=512, n_embd=192, n_layer=4,
                        n_head=6, bos_token_id=0, eos_token_id=0, pad_token_id=0)
    model = GPT2LMHeadModel(config)
    stream = make_stream()
    train(model, stream)
    model.eval()
    words = set(" ".join(LINES).replace(",", "").split())
    for verse in range(3):
        begin = torch.randint(len(stream) - 16, (SONGS, 1))
        prompt = stream[begin + torch.arange(16)]
        with torch.inference_mode():
            songs = model.generate(prompt, attention_mask=torch.ones_like(prompt),
                                   max_new_tokens=LENGTH, min_new_tokens=LENGTH,
                                   do_sample=True, top_k=8, pad_token_id=0)
        text = ["".join(LETTERS[i] for i in song) for song in songs[:, 16:].tolist()]
        sung = [w for song in text for w in song.replace(",", "").replace(".", "").split()]
        known = sum(w in words for w in sung) / max(len(sung), 1)
        print(f"verse {verse}: {len(sung)} words, known {known:.3f}")


if __name__ == "__main__":
    main()
