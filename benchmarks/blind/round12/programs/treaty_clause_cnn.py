"""Sort treaty clauses by subject: learn a subword vocabulary, then a small classifier."""
import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch import nn

SUBJECTS = 9
CLAUSES = 2600
WORDS = 60
LENGTH = 128
BATCH = 65
EPOCHS = 4


def compose(rng):
    onsets = ["b", "br", "d", "f", "g", "gl", "k", "l", "m", "n", "p", "pr", "r", "s", "st", "t"]
    nuclei = ["a", "e", "i", "o", "u", "ai", "eo"]
    def word():
        parts = rng.integers(2, 5)
        return "".join(onsets[rng.integers(16)] + nuclei[rng.integers(7)] for _ in range(parts))
    lexicon = np.array([word() for _ in range(15000)])
    subject = rng.integers(0, SUBJECTS, size=CLAUSES)
    texts = []
    for s in subject:
        own = rng.integers(s * 400, s * 400 + 400, size=WORDS // 4)
        rest = rng.integers(0, len(lexicon), size=WORDS - len(own))
        texts.append(" ".join(lexicon[rng.permutation(np.concatenate([own, rest]))]))
    return texts, torch.from_numpy(subject)


def learn_vocabulary(texts):
    tok = Tokenizer(models.BPE(unk_token="[UNK]"))
    tok.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(vocab_size=12000, special_tokens=["[UNK]", "[PAD]", "[CLS]"],
                                  show_progress=False)
    tok.train_from_iterator(texts, trainer)
    return tok


def to_rows(tok, texts):
    rows = torch.empty(len(texts), LENGTH, dtype=torch.long)
    for i, text in enumerate(texts):
        vocab = tok.get_vocab()
        ids = [vocab["[CLS]"]] + tok.encode(text).ids[:LENGTH - 1]
        ids += [vocab["[PAD]"]] * (LENGTH - len(ids))
        rows[i] = torch.tensor(ids)
    return rows


class ClauseNet(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.words = nn.Embedding(size, 64, padding_idx=1)
        self.conv = nn.Conv1d(64, 128, 5, padding=2)
        self.mix = nn.Conv1d(128, 128, 3, padding=1)
        self.head = nn.Linear(128, SUBJECTS)

    def forward(self, rows):
        z = torch.relu(self.conv(self.words(rows).transpose(1, 2)))
        return self.head(torch.relu(self.mix(z)).amax(2))


def main():
    torch.manual_seed(14)
    texts, subject = compose(np.random.default_rng(14))
    tok = learn_vocabulary(texts)
    rows = to_rows(tok, texts)
    print(f"vocabulary {tok.get_vocab_size()} mean length {(rows != 1).sum(1).float().mean():.1f}")
    net = ClauseNet(tok.get_vocab_size())
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    for epoch in range(EPOCHS):
        order = torch.randperm(len(rows))
        total, right = 0.0, 0
        for start in range(0, len(rows), BATCH):
            pick = order[start:start + BATCH]
            logits = net(rows[pick])
            loss = nn.functional.cross_entropy(logits, subject[pick])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(pick)
            right += (logits.argmax(1) == subject[pick]).sum().item()
        print(f"epoch {epoch} loss {total / len(rows):.4f} right {right / len(rows):.3f}")


if __name__ == "__main__":
    main()
