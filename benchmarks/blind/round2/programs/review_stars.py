"""Star rating from review text: DistilBERT sized down, trained from scratch on a CSV file."""
import csv
import os
import random
import tempfile

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (DataCollatorWithPadding, DistilBertConfig, DistilBertForSequenceClassification,
                          PreTrainedTokenizerFast, Trainer, TrainingArguments, set_seed)
from transformers.utils import logging as hf_logging

hf_logging.set_verbosity_error()


def write_reviews(path, n, seed):
    rnd = random.Random(seed)
    plain = [f"w{i:03d}" for i in range(900)]
    tone = {s: [f"tone{s}x{i}" for i in range(25)] for s in range(5)}
    with open(path, "w", newline="") as f:
        out = csv.writer(f)
        out.writerow(["review", "stars"])
        for _ in range(n):
            s = rnd.randrange(5)
            words = [rnd.choice(tone[s]) if rnd.random() < 0.1 else rnd.choice(plain)
                     for _ in range(rnd.randint(20, 90))]
            out.writerow([" ".join(words), s])


def read_reviews(path):
    with open(path, newline="") as f:
        rows = list(csv.DictReader(f))
    return Dataset.from_dict({"review": [r["review"] for r in rows], "labels": [int(r["stars"]) for r in rows]})


def main():
    set_seed(17)
    with tempfile.TemporaryDirectory() as work:
        a, b = os.path.join(work, "train.csv"), os.path.join(work, "dev.csv")
        write_reviews(a, 2600, 1)
        write_reviews(b, 200, 2)
        train, dev = read_reviews(a), read_reviews(b)
        base = Tokenizer(models.WordLevel(unk_token="[UNK]"))
        base.pre_tokenizer = pre_tokenizers.Whitespace()
        base.train_from_iterator(train["review"], trainers.WordLevelTrainer(
            special_tokens=["[PAD]", "[UNK]"], show_progress=False))
        tok = PreTrainedTokenizerFast(tokenizer_object=base, pad_token="[PAD]", unk_token="[UNK]")

        def encode(batch):
            return tok(batch["review"], truncation=True, max_length=128, return_token_type_ids=False)

        train = train.map(encode, batched=True, remove_columns=["review"])
        dev = dev.map(encode, batched=True, remove_columns=["review"])
        model = DistilBertForSequenceClassification(DistilBertConfig(
            vocab_size=len(tok), dim=160, n_layers=3, n_heads=4, hidden_dim=480, num_labels=5,
            max_position_embeddings=128, dropout=0.0, attention_dropout=0.0, seq_classif_dropout=0.0))
        args = TrainingArguments(
            output_dir=work, num_train_epochs=2, per_device_train_batch_size=24, per_device_eval_batch_size=64,
            learning_rate=4e-4, eval_strategy="epoch", save_strategy="no", logging_steps=25,
            report_to=[], disable_tqdm=True, use_cpu=True, seed=17)
        trainer = Trainer(
            model=model, args=args, train_dataset=train, eval_dataset=dev,
            data_collator=DataCollatorWithPadding(tok),
            compute_metrics=lambda p: {"acc": float((np.argmax(p.predictions, -1) == p.label_ids).mean())})
        trainer.train()
        last = [h for h in trainer.state.log_history if "eval_acc" in h][-1]
    print(f"dev accuracy {last['eval_acc']:.3f} loss {last['eval_loss']:.3f}")


if __name__ == "__main__":
    main()
