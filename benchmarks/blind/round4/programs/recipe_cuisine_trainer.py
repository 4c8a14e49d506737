"""Fine-tune a small BERT that names the cuisine of a recipe from its ingredient list."""
import os

os.environ.setdefault("HF_HOME", os.path.abspath("hf_home"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy as np
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

CUISINES = ["andean", "baltic", "cantonese", "levantine", "oaxacan", "sichuan"]


def pantry(size=1200):
    heads = ["sal", "ro", "mi", "tan", "ku", "bel", "or", "fen", "gri", "lo", "pa", "ze"]
    tails = ["ca", "n", "rin", "to", "ma", "lis", "ber", "da", "qua", "sh"]
    return [heads[i % 12] + tails[(i // 12) % 10] + str(i // 120) for i in range(size)]


def write_recipes(count, seed):
    rng = np.random.default_rng(seed)
    words = np.array(pantry())
    taste = np.random.default_rng(99).dirichlet(np.full(len(words), 0.05), len(CUISINES))
    texts, labels = [], []
    for _ in range(count):
        label = int(rng.integers(len(CUISINES)))
        length = int(rng.integers(18, 106))
        mix = 0.4 * taste[label] + 0.6 / len(words)
        texts.append(" ".join(rng.choice(words, length, p=mix / mix.sum())))
        labels.append(label)
    return Dataset.from_dict({"text": texts, "label": labels})


def make_tokenizer():
    vocab = {t: i for i, t in enumerate(["[PAD]", "[UNK]", "[CLS]"] + pantry())}
    tok = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    tok.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tok.post_processor = processors.TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", 2)])
    return PreTrainedTokenizerFast(tokenizer_object=tok, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]")


def accuracy(pred):
    return {"accuracy": float((pred.predictions.argmax(-1) == pred.label_ids).mean())}


def main():
    set_seed(21)
    tokenizer = make_tokenizer()

    def encode(rows):
        return tokenizer(rows["text"], truncation=True, max_length=160, padding="max_length")

    train = write_recipes(960, 1).map(encode, batched=True, remove_columns=["text"])
    test = write_recipes(192, 2).map(encode, batched=True, remove_columns=["text"])
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=128, num_hidden_layers=3, num_attention_heads=4,
        intermediate_size=512, max_position_embeddings=192, num_labels=len(CUISINES),
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, pad_token_id=0,
    )
    args = TrainingArguments(
        output_dir="cuisine_run", per_device_train_batch_size=16, per_device_eval_batch_size=32,
        num_train_epochs=1, learning_rate=4e-4, logging_steps=15, save_strategy="no",
        report_to="none", use_cpu=True, disable_tqdm=True, seed=21,
    )
    trainer = Trainer(
        model=BertForSequenceClassification(config), args=args, train_dataset=train,
        eval_dataset=test, processing_class=tokenizer, compute_metrics=accuracy,
    )
    result = trainer.train()
    print(f"training loss {result.training_loss:.2f}")
    print(f"test accuracy {trainer.evaluate()['eval_accuracy']:.2f}")


if __name__ == "__main__":
    main()
