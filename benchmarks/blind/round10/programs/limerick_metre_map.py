"""A small BERT names the metre of limerick lines (datasets + transformers)."""
import os
import random

os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.utils.data import DataLoader
from transformers import (BertConfig, BertForSequenceClassification, DataCollatorWithPadding,
                          PreTrainedTokenizerFast)

SYLLABLES = ["da", "DUM", "la", "LIM", "ro", "ROCK", "te", "TIDE", "mi", "MOON"]
METRES = {"anapest": "001", "amphibrach": "010", "dactyl": "100"}
LINES, EPOCHS, BATCH = 4000, 4, 32


def line(rng, feet, pattern):
    words = []
    for _ in range(feet):
        for beat in pattern:
            pool = SYLLABLES[1::2] if beat == "1" else SYLLABLES[0::2]
            words.append(rng.choice(pool) if rng.random() > 0.1 else rng.choice(SYLLABLES))
    return " ".join(words)


def collection(seed):
    rng = random.Random(seed)
    names = list(METRES)
    text, label = [], []
    for _ in range(LINES):
        k = rng.randrange(3)
        text.append(line(rng, rng.randint(4, 9), METRES[names[k]]))
        label.append(k)
    return Dataset.from_dict({"text": text, "label": label})


def make_tokenizer():
    vocab = {w: i for i, w in enumerate(["[PAD]", "[UNK]"] + SYLLABLES)}
    core = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=core, pad_token="[PAD]", unk_token="[UNK]")


def main():
    torch.manual_seed(6)
    tokenizer = make_tokenizer()
    lines = collection(31)
    collate = DataCollatorWithPadding(tokenizer)

    def encode(row):
        return tokenizer(row["text"], truncation=True, padding="max_length", max_length=96)

    model = BertForSequenceClassification(BertConfig(
        vocab_size=len(tokenizer), hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=256, max_position_embeddings=128, num_labels=3, pad_token_id=0))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        coded = lines.map(encode, remove_columns=["text"], load_from_cache_file=False)
        gen = torch.Generator().manual_seed(epoch)
        loader = DataLoader(coded, batch_size=BATCH, shuffle=True, generator=gen,
                            collate_fn=collate)
        right = total = 0
        model.train()
        for batch in loader:
            out = model(**batch)
            opt.zero_grad()
            out.loss.backward()
            opt.step()
            right += (out.logits.argmax(-1) == batch["labels"]).sum().item()
            total += len(batch["labels"])
        print(f"epoch {epoch}  accuracy {right / total:.3f}")


if __name__ == "__main__":
    main()
