"""Sort letters to a city council by department: a small BERT, trained from scratch."""
import os
import random

import torch
from torch.utils.data import Dataset
from transformers import (BertConfig, BertForSequenceClassification, Trainer,
                          TrainingArguments)

WORK = os.path.join(os.environ.get("TMPDIR", "."), "letter_sorter")
TOPICS = {
    "roads": ["pothole", "lamp", "crossing", "kerb", "traffic", "sign"],
    "parks": ["bench", "tree", "pond", "playground", "hedge", "ducks"],
    "waste": ["bin", "glass", "collection", "compost", "smell", "container"],
    "housing": ["rent", "damp", "lift", "neighbour", "lease", "boiler"],
}
PLAIN = ("dear council i write because the near our street has been for weeks and nobody "
         "came please look at it soon we are old with kind regards since last winter "
         "my wife called twice on monday there was no answer thank you").split()
MAX_LEN = 128


def letters(count, seed):
    rng = random.Random(seed)
    names = list(TOPICS)
    out = []
    for _ in range(count):
        label = rng.randrange(len(names))
        words = [rng.choice(PLAIN) for _ in range(rng.randint(14, 52))]
        for _ in range(3):
            words[rng.randrange(len(words))] = rng.choice(TOPICS[names[label]])
        if rng.random() < 0.3:
            words[rng.randrange(len(words))] = rng.choice(TOPICS[rng.choice(names)])
        out.append((" ".join(words), label))
    return out


def make_vocabulary():
    words = sorted(set(PLAIN) | {word for group in TOPICS.values() for word in group})
    return {word: i + 3 for i, word in enumerate(words)}


class Letters(Dataset):
    def __init__(self, pairs, vocabulary):
        self.items = [{"input_ids": [1] + [vocabulary[w] for w in text.split()] + [2],
                       "labels": label} for text, label in pairs]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(items):
    longest = MAX_LEN
    ids = torch.zeros(len(items), longest, dtype=torch.long)
    mask = torch.zeros(len(items), longest, dtype=torch.long)
    for row, item in enumerate(items):
        n = len(item["input_ids"])
        ids[row, :n] = torch.tensor(item["input_ids"])
        mask[row, :n] = 1
    return {"input_ids": ids, "attention_mask": mask,
            "labels": torch.tensor([item["labels"] for item in items])}


def main():
    torch.manual_seed(1)
    vocabulary = make_vocabulary()
    train = Letters(letters(576, 1), vocabulary)
    test = Letters(letters(160, 2), vocabulary)
    config = BertConfig(vocab_size=len(vocabulary) + 3, hidden_size=192, num_hidden_layers=4,
                        num_attention_heads=4, intermediate_size=768,
                        max_position_embeddings=MAX_LEN, num_labels=len(TOPICS),
                        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model = BertForSequenceClassification(config)
    arguments = TrainingArguments(
        output_dir=WORK, per_device_train_batch_size=32, per_device_eval_batch_size=32,
        num_train_epochs=2, learning_rate=4e-4, lr_scheduler_type="constant",
        gradient_checkpointing=True, save_strategy="no", logging_steps=12,
        report_to="none", use_cpu=True, disable_tqdm=True, dataloader_pin_memory=False, seed=6)
    trainer = Trainer(model=model, args=arguments, train_dataset=train, eval_dataset=test,
                      data_collator=collate)
    result = trainer.train()
    print(f"steps {result.global_step}, training loss {result.training_loss:.2f}")
    answer = trainer.predict(test)
    right = (answer.predictions.argmax(-1) == answer.label_ids).mean()
    print(f"letters sorted to the right department: {right:.2f}")


if __name__ == "__main__":
    main()
