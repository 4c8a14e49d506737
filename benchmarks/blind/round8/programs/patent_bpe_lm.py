"""Train a byte pair tokenizer on patent claims and a recurrent language model."""
import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch import nn

CLAIMS = 24_000
VOCAB = 3000
SPAN = 64
BATCH = 32
STEPS = 100

ROOTS = ["valv", "rot", "sens", "coupl", "hous", "actuat", "membran", "conduct", "spind",
         "clamp", "bear", "puls", "filt", "shaft", "nozzl", "sprin", "lens", "gear"]
ENDS = ["e", "ing", "or", "ed", "ation", "er", "able", "s", "ive", "ment"]
GLUE = ["a", "the", "wherein", "said", "comprising", "of", "to", "and", "configured"]


def make_claims(seed=41):
    rng = np.random.default_rng(seed)
    words = np.array([root + end for root in ROOTS for end in ENDS])
    weights = 1 / (1 + np.arange(len(words)))
    nouns = rng.choice(words, (CLAIMS, 22), p=weights / weights.sum())
    glue = rng.choice(GLUE, (CLAIMS, 22))
    codes = rng.integers(10, 99999, CLAIMS)
    claims = []
    for place in range(CLAIMS):
        pairs = [f"{g} {n}" for g, n in zip(glue[place], nouns[place])]
        claims.append(" ".join(pairs) + f" as in figure {codes[place]}.")
    return claims


class ClaimModel(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, width)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, VOCAB)

    def forward(self, tokens):
        return self.head(self.gru(self.embed(tokens))[0])


def main():
    torch.manual_seed(0)
    claims = make_claims()
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(vocab_size=VOCAB, special_tokens=["[UNK]"],
                                  show_progress=False)
    tokenizer.train_from_iterator(claims, trainer)
    encoded = tokenizer.encode_batch(claims)
    stream = torch.from_numpy(np.concatenate([np.array(e.ids) for e in encoded]))
    print(f"vocabulary {tokenizer.get_vocab_size()} tokens {len(stream)}")
    model = ClaimModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    offsets = torch.arange(SPAN + 1)
    for step in range(STEPS):
        begin = torch.randint(len(stream) - SPAN - 1, (BATCH, 1))
        window = stream[begin + offsets]
        scores = model(window[:, :-1])
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), window[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0 or step == STEPS - 1:
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
