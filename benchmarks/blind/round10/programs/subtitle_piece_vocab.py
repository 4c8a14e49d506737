"""Learns a subword vocabulary for film subtitles and measures how compactly it codes them."""
import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

LINES, WORDS_PER_LINE, LEXICON = 600000, 10, 120000
VOCAB, CHUNK = 8000, 15000


def lexicon(rng):
    onset = ["b", "br", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "st", "t", "v", ""]
    vowel = ["a", "e", "i", "o", "u", "ai", "ou"]
    coda = ["", "n", "r", "s", "l", "t", "nd", "ck"]
    parts = [a + b + c for a in onset for b in vowel for c in coda]
    length = rng.integers(1, 5, LEXICON)
    picks = rng.integers(0, len(parts), (LEXICON, 4))
    return np.array(["".join(parts[j] for j in row[:n]) for row, n in zip(picks, length)],
                    dtype=object)


def subtitles(seed):
    rng = np.random.default_rng(seed)
    words = lexicon(rng)
    rank = np.minimum(rng.zipf(1.25, (LINES, WORDS_PER_LINE)) - 1, 10 ** 9)
    rank = np.where(rank < LEXICON, rank, rng.integers(0, LEXICON, rank.shape))
    return [" ".join(row) for row in words[rank]]


def main():
    lines = subtitles(64)
    held_back = lines[-20000:]
    lines = lines[:-20000]
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(vocab_size=VOCAB, special_tokens=["[UNK]", "[PAD]"],
                                  show_progress=False)
    tokenizer.train_from_iterator(
        (lines[i:i + CHUNK] for i in range(0, len(lines), CHUNK)), trainer, length=len(lines))
    print(f"lines {len(lines)}, vocabulary {tokenizer.get_vocab_size()}")

    pieces = 0
    letters = sum(len(line) for line in lines)
    use = np.zeros(tokenizer.get_vocab_size(), np.int64)
    for i in range(0, len(lines), CHUNK):
        for coded in tokenizer.encode_batch_fast(lines[i:i + CHUNK]):
            use[coded.ids] += 1
            pieces += len(coded)
    print(f"letters per piece {letters / pieces:.3f}, pieces in use {(use > 0).sum()}")
    new = sum(len(c) for c in tokenizer.encode_batch_fast(held_back))
    print(f"held back: {new / len(held_back):.2f} pieces per line")


if __name__ == "__main__":
    main()
