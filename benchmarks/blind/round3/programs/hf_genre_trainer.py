"""Film genre from plot keywords: Trainer with dynamic padding, evaluation and one checkpoint per epoch."""
import os
from pathlib import Path

ROOT = Path(os.environ.get("TMPDIR", ".")) / "genre_run"
os.environ.setdefault("HF_HOME", str(ROOT / "hf"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy as np
from datasets import Dataset, disable_progress_bars
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (DataCollatorWithPadding, DistilBertConfig, DistilBertForSequenceClassification,
                          PreTrainedTokenizerFast, Trainer, TrainingArguments, set_seed)

disable_progress_bars()
GENRES = 5


def plots(n, seed):
    rng = np.random.default_rng(seed)
    mix = np.random.default_rng(40).dirichlet(np.full(2000, 0.06), size=GENRES)
    text, label = [], []
    for _ in range(n):
        g = int(rng.integers(GENRES))
        size = int(np.clip(rng.lognormal(3.6, 0.4), 10, 110))
        w = np.where(rng.random(size) < 0.35, rng.choice(2000, size, p=mix[g]), rng.integers(0, 2000, size))
        text.append(" ".join(f"k{i}" for i in w))
        label.append(g)
    return Dataset.from_dict({"text": text, "label": label})


def word_tokenizer():
    vocab = {"[PAD]": 0, "[UNK]": 1, **{f"k{i}": i + 2 for i in range(2000)}}
    raw = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="[PAD]", unk_token="[UNK]", model_max_length=128)


def accuracy(p):
    return {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())}


if __name__ == "__main__":
    set_seed(2)
    tok = word_tokenizer()
    data = {name: plots(n, s).map(lambda b: tok(b["text"], truncation=True), batched=True, remove_columns=["text"])
            for name, n, s in (("train", 900, 1), ("dev", 150, 2))}
    model = DistilBertForSequenceClassification(DistilBertConfig(
        vocab_size=len(tok), dim=192, n_layers=3, n_heads=4, hidden_dim=768, max_position_embeddings=128,
        num_labels=GENRES))
    args = TrainingArguments(
        output_dir=str(ROOT), num_train_epochs=3, per_device_train_batch_size=16, gradient_accumulation_steps=2,
        per_device_eval_batch_size=50, learning_rate=6e-4, warmup_steps=20, logging_steps=25,
        eval_strategy="epoch", save_strategy="epoch", save_total_limit=1, save_only_model=True,
        report_to="none", use_cpu=True, disable_tqdm=True, seed=2, log_level="error")
    trainer = Trainer(model=model, args=args, train_dataset=data["train"], eval_dataset=data["dev"],
                      data_collator=DataCollatorWithPadding(tok), compute_metrics=accuracy)
    trainer.train()
    scores = [h["eval_accuracy"] for h in trainer.state.log_history if "eval_accuracy" in h]
    print("dev accuracy by epoch", [round(s, 2) for s in scores])
