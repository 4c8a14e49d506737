"""Names the language of restaurant menu lines with a small BERT."""
import random

import torch
from transformers import BertConfig, BertForSequenceClassification

LINES, EPOCHS, TOKENS_PER_BATCH = 3000, 3, 640
LANGUAGES = ["olan", "verish", "tumari", "kesk"]
ENDINGS = {"olan": "ao", "verish": "ie", "tumari": "ua", "kesk": "ek"}
LETTERS = "abcdefghijklmnoprstuvz"


def menu(seed):
    rng = random.Random(seed)
    words = {}
    for name in LANGUAGES:
        words[name] = ["".join(rng.choice(LETTERS) for _ in range(rng.randint(2, 6)))
                       + rng.choice(ENDINGS[name]) for _ in range(120)]
    lines = []
    for _ in range(LINES):
        k = rng.randrange(len(LANGUAGES))
        length = min(2 + int(rng.expovariate(0.4)), 9)
        pool = words[LANGUAGES[k]]
        other = words[rng.choice(LANGUAGES)]
        lines.append((" ".join(rng.choice(pool if rng.random() < 0.6 else other)
                               for _ in range(length)), k))
    return lines


def batches(coded, labels, rng):
    """Lines of about the same length go together."""
    order = sorted(range(len(coded)), key=lambda i: (len(coded[i]), rng.random()))
    groups, group = [], []
    for i in order:
        if group and (len(group) + 1) * len(coded[i]) > TOKENS_PER_BATCH:
            groups.append(group)
            group = []
        group.append(i)
    groups.append(group)
    rng.shuffle(groups)
    for group in groups:
        width = max(len(coded[i]) for i in group)
        ids = torch.zeros(len(group), width, dtype=torch.long)
        for row, i in enumerate(group):
            ids[row, :len(coded[i])] = torch.tensor(coded[i])
        yield ids, (ids > 0).long(), torch.tensor([labels[i] for i in group])


def main():
    torch.manual_seed(58)
    rng = random.Random(59)
    lines = menu(57)
    vocab = {c: i + 1 for i, c in enumerate("_" + LETTERS)}
    coded = [[vocab[c] for c in text.replace(" ", "_")] for text, _ in lines]
    labels = [k for _, k in lines]
    model = BertForSequenceClassification(BertConfig(
        vocab_size=len(vocab) + 1, hidden_size=96, num_hidden_layers=3, num_attention_heads=4,
        intermediate_size=384, max_position_embeddings=128, num_labels=4, pad_token_id=0))
    opt = torch.optim.AdamW(model.parameters(), lr=7e-4)
    for epoch in range(EPOCHS):
        right, loss_sum = 0, 0.0
        for ids, mask, y in batches(coded, labels, rng):
            out = model(input_ids=ids, attention_mask=mask, labels=y)
            opt.zero_grad()
            out.loss.backward()
            opt.step()
            right += (out.logits.argmax(1) == y).sum().item()
            loss_sum += out.loss.item() * len(y)
        print(f"epoch {epoch}  loss {loss_sum / LINES:.4f}  accuracy {right / LINES:.3f}")
    print(f"lines {LINES}, tokens {sum(map(len, coded))}")


if __name__ == "__main__":
    main()
