"""Routes short support tickets to one of six teams with a small BERT trained from scratch."""
import os
import random
import tempfile

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (BertConfig, BertForSequenceClassification, DataCollatorWithPadding,
                          PreTrainedTokenizerFast, Trainer, TrainingArguments, set_seed)
from transformers.utils import logging as hf_logging

hf_logging.set_verbosity_error()
TEAMS = ["billing", "network", "accounts", "hardware", "licences", "other"]


def tickets(n, seed):
    rnd = random.Random(seed)
    shared = [f"word{i}" for i in range(600)]
    topical = {k: [f"{k}{i}" for i in range(40)] for k in TEAMS}
    rows = {"text": [], "labels": []}
    for _ in range(n):
        k = rnd.randrange(len(TEAMS))
        length = rnd.randint(15, 40)
        ws = [rnd.choice(topical[TEAMS[k]]) if rnd.random() < 0.12 else rnd.choice(shared) for _ in range(length)]
        rows["text"].append(" ".join(ws))
        rows["labels"].append(k)
    return Dataset.from_dict(rows)


def build_tokenizer(texts):
    tok = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tok.pre_tokenizer = pre_tokenizers.Whitespace()
    tok.train_from_iterator(texts, trainers.WordLevelTrainer(special_tokens=["[PAD]", "[UNK]", "[CLS]"],
                                                             show_progress=False))
    return PreTrainedTokenizerFast(tokenizer_object=tok, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]")


def accuracy(pred):
    return {"accuracy": float((pred.predictions.argmax(-1) == pred.label_ids).mean())}


def main():
    set_seed(21)
    train, dev = tickets(1050, 1), tickets(200, 2)
    tok = build_tokenizer(train["text"])

    def encode(batch):
        return tok(batch["text"], truncation=True, max_length=192, padding="max_length")

    train = train.map(encode, batched=True, remove_columns=["text"])
    dev = dev.map(encode, batched=True, remove_columns=["text"])
    cfg = BertConfig(vocab_size=len(tok), hidden_size=128, num_hidden_layers=3, num_attention_heads=4,
                     intermediate_size=384, num_labels=len(TEAMS), max_position_embeddings=256,
                     hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, attn_implementation="eager")
    model = BertForSequenceClassification(cfg)
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            output_dir=out, num_train_epochs=2, per_device_train_batch_size=16, per_device_eval_batch_size=32,
            learning_rate=4e-4, lr_scheduler_type="constant", save_strategy="no", report_to=[],
            eval_strategy="steps", eval_steps=15,
            logging_steps=50, disable_tqdm=True, use_cpu=True, seed=21)
        trainer = Trainer(model=model, args=args, train_dataset=train, eval_dataset=dev,
                          data_collator=DataCollatorWithPadding(tok), compute_metrics=accuracy)
        trainer.train()
        score = trainer.evaluate()
    print(f"dev accuracy {score['eval_accuracy']:.3f} loss {score['eval_loss']:.3f}")


if __name__ == "__main__":
    main()
