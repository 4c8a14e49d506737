"""Fine-tune a small DistilBERT that names the season of a haiku."""
import os

os.environ.setdefault("HF_HOME", os.path.abspath("hf_home"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy as np
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    DataCollatorWithPadding,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

SEASONS = ["spring", "summer", "autumn", "winter"]


def dictionary(size=900):
    heads = ["ka", "shi", "no", "mu", "ha", "tsu", "yo", "re", "ki"]
    tails = ["ze", "ra", "mi", "gumo", "na", "to", "ri", "yuki", "sa", "wa"]
    return [heads[i % 9] + tails[(i // 9) % 10] + "aeiou"[i // 90 % 5] * (1 + i // 450) for i in range(size)]


def collect(count, seed):
    rng = np.random.default_rng(seed)
    words = np.array(dictionary())
    season_words = np.random.default_rng(4).choice(len(words), (4, 25), replace=False)
    rows = {"text": [], "label": []}
    for _ in range(count):
        label = int(rng.integers(4))
        length = int(np.clip(rng.normal(52, 10), 25, 80))
        picks = rng.integers(0, len(words), length)
        marked = rng.random(length) < 0.12
        picks[marked] = rng.choice(season_words[label], marked.sum())
        rows["text"].append(" ".join(words[picks]))
        rows["label"].append(label)
    return Dataset.from_dict(rows)


def main():
    set_seed(29)
    vocab = {t: i for i, t in enumerate(["[PAD]", "[UNK]"] + sorted(set(dictionary())))}
    tok = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    tok.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=tok, pad_token="[PAD]", unk_token="[UNK]", model_input_names=["input_ids", "attention_mask"],
    )

    def encode(rows):
        return tokenizer(rows["text"], truncation=True, max_length=96)

    train = collect(1392, 1).map(encode, batched=True, remove_columns=["text"])
    check = collect(96, 2).map(encode, batched=True, remove_columns=["text"])
    config = DistilBertConfig(
        vocab_size=len(vocab), dim=160, n_layers=4, n_heads=5, hidden_dim=640, max_position_embeddings=96,
        num_labels=4, dropout=0.1, attention_dropout=0.0, seq_classif_dropout=0.1, pad_token_id=0,
    )
    args = TrainingArguments(
        output_dir="haiku_run", per_device_train_batch_size=24, per_device_eval_batch_size=48,
        gradient_accumulation_steps=2, num_train_epochs=1, learning_rate=1e-3, warmup_steps=4,
        logging_steps=4, eval_strategy="steps", eval_steps=8, save_strategy="no",
        report_to="none", use_cpu=True, disable_tqdm=True, seed=29,
    )
    trainer = Trainer(
        model=DistilBertForSequenceClassification(config), args=args, train_dataset=train, eval_dataset=check,
        data_collator=DataCollatorWithPadding(tokenizer),
        compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())},
    )
    trainer.train()
    print(f"accuracy on unseen haiku {trainer.evaluate()['eval_accuracy']:.2f}")


if __name__ == "__main__":
    main()
