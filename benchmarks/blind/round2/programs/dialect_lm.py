"""Small causal language model on synthetic dialect transcripts; next word accuracy as the score."""
import tempfile

import numpy as np
import torch
from datasets import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, default_data_collator, set_seed
from transformers.utils import logging as hf_logging

hf_logging.set_verbosity_error()
VOCAB = 9000
LENGTH = 48


def transcripts(count, seed):
    rng = np.random.default_rng(seed)
    nxt = np.random.default_rng(0).integers(0, VOCAB, size=(VOCAB, 3))
    ids = np.empty((count, LENGTH), dtype=np.int64)
    ids[:, 0] = rng.zipf(1.4, count) % VOCAB
    for t in range(1, LENGTH):
        jump = rng.random(count) < 0.2
        step = nxt[ids[:, t - 1], rng.integers(0, 3, count)]
        ids[:, t] = np.where(jump, rng.zipf(1.4, count) % VOCAB, step)
    return Dataset.from_dict({"input_ids": ids, "labels": ids}).with_format("torch")


def next_word_accuracy(pred):
    guess = np.argmax(pred.predictions[:, :-1], axis=-1)
    gold = pred.label_ids[:, 1:]
    top = np.sort(np.partition(pred.predictions[:, :-1], -2, axis=-1)[..., -2:], axis=-1)
    return {"next_word": float((guess == gold).mean()), "margin": float((top[..., 1] - top[..., 0]).mean())}


def main():
    set_seed(5)
    torch.manual_seed(5)
    train = transcripts(1000, 1)
    held_out = transcripts(320, 2)
    cfg = GPT2Config(vocab_size=VOCAB, n_positions=LENGTH, n_embd=96, n_layer=2, n_head=4,
                     resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    model = GPT2LMHeadModel(cfg)
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            output_dir=out,
            num_train_epochs=2,
            per_device_train_batch_size=16,
            per_device_eval_batch_size=16,
            learning_rate=1e-3,
            lr_scheduler_type="constant",
            eval_strategy="epoch",
            save_strategy="no",
            logging_steps=100,
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
            seed=5,
        )
        trainer = Trainer(
            model=model,
            args=args,
            train_dataset=train,
            eval_dataset=held_out,
            data_collator=default_data_collator,
            compute_metrics=next_word_accuracy,
        )
        trainer.train()
        last = [h for h in trainer.state.log_history if "eval_loss" in h][-1]
    print(f"held out loss {last['eval_loss']:.3f} next word {last['eval_next_word']:.4f} margin {last['eval_margin']:.3f}")


if __name__ == "__main__":
    main()
