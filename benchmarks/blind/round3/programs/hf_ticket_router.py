"""Route support tickets to teams: a small BERT trained from scratch with the Trainer."""
import os
from pathlib import Path

RUN = Path(os.environ.get("TMPDIR", ".")) / "ticket_router"
os.environ.setdefault("HF_HOME", str(RUN / "hf"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy as np
from datasets import Dataset, disable_progress_bars
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (BertConfig, BertForSequenceClassification, DataCollatorWithPadding,
                          PreTrainedTokenizerFast, Trainer, TrainingArguments, set_seed)

disable_progress_bars()
TEAMS = ["billing", "network", "hardware", "accounts", "security", "other"]
MAX_TOKENS = 256


def invent_tickets(n, seed):
    rng = np.random.default_rng(seed)
    words = np.array([f"w{i}" for i in range(1500)])
    topic = np.random.default_rng(99).dirichlet(np.full(1500, 0.05), size=len(TEAMS))
    background = np.random.default_rng(98).dirichlet(np.full(1500, 0.2))
    texts, labels = [], []
    for _ in range(n):
        team = int(rng.integers(len(TEAMS)))
        size = int(np.clip(rng.lognormal(3.1, 0.45), 6, 90))
        own = rng.random(size) < 0.5
        draw = np.where(own, rng.choice(1500, size, p=topic[team]), rng.choice(1500, size, p=background))
        texts.append(" ".join(words[draw]))
        labels.append(team)
    return Dataset.from_dict({"text": texts, "label": labels})


def build_tokenizer(texts):
    vocab = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3}
    for text in texts:
        for w in text.split():
            vocab.setdefault(w, len(vocab))
    raw = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    raw.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="[PAD]", unk_token="[UNK]",
                                   cls_token="[CLS]", sep_token="[SEP]", model_max_length=MAX_TOKENS)


def score(pred):
    return {"accuracy": float((pred.predictions.argmax(-1) == pred.label_ids).mean())}


def main():
    set_seed(12)
    train, test = invent_tickets(1000, 1), invent_tickets(300, 2)
    tok = build_tokenizer(train["text"])

    def encode(batch):
        return tok(batch["text"], padding="max_length", truncation=True, max_length=MAX_TOKENS)

    train = train.map(encode, batched=True, remove_columns=["text"])
    test = test.map(encode, batched=True, remove_columns=["text"])

    config = BertConfig(vocab_size=len(tok), hidden_size=128, num_hidden_layers=3, num_attention_heads=4,
                        intermediate_size=384, max_position_embeddings=MAX_TOKENS, num_labels=len(TEAMS),
                        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model = BertForSequenceClassification(config)
    args = TrainingArguments(
        output_dir=str(RUN), num_train_epochs=2, per_device_train_batch_size=16, per_device_eval_batch_size=50,
        learning_rate=8e-4, warmup_steps=20, lr_scheduler_type="linear", logging_steps=500,
        eval_strategy="no", save_strategy="no", report_to="none", use_cpu=True, disable_tqdm=True, seed=12)
    trainer = Trainer(model=model, args=args, train_dataset=train, eval_dataset=test,
                      data_collator=DataCollatorWithPadding(tok), compute_metrics=score)
    trainer.train()
    result = trainer.evaluate()
    print(f"test accuracy {result['eval_accuracy']:.3f}  loss {result['eval_loss']:.2f}")


if __name__ == "__main__":
    main()
