"""
verdict: same
stack:
  score_pairs(read_fasta("family.fasta"), scorer_for("EBLOSUM62"))
  scorer(left, right)
  parse_matrix(matrix_name)
  line.split()
call: parse_matrix(matrix_name)
loop: for left, right in combinations(sequences, 2)
why: the closure reads the same substitution matrix file again for each pair of sequences
"""
from itertools import combinations
from pathlib import Path

import numpy as np

MATRIX_DIR = Path("/usr/share/EMBOSS/data")


def parse_matrix(name):
    table = {}
    letters = None
    for line in (MATRIX_DIR / name).read_text().splitlines():
        if line.startswith("#"):
            continue
        fields = line.split()
        if letters is None:
            letters = fields
            continue
        for letter, score in zip(letters, fields[1:]):
            table[fields[0], letter] = int(score)
    return table


def scorer_for(matrix_name, gap=-8):
    def align(a, b):
        table = parse_matrix(matrix_name)
        H = np.zeros((len(a) + 1, len(b) + 1))
        for i, x in enumerate(a, 1):
            for j, y in enumerate(b, 1):
                H[i, j] = max(0, H[i-1, j-1] + table[x, y], H[i-1, j] + gap, H[i, j-1] + gap)
        return H.max()

    return align


def read_fasta(path):
    records = Path(path).read_text().split(">")[1:]
    return ["".join(r.splitlines()[1:]) for r in records]


def score_pairs(sequences, scorer):
    return [scorer(left, right) for left, right in combinations(sequences, 2)]


if __name__ == "__main__":
    print(np.mean(score_pairs(read_fasta("family.fasta"), scorer_for("EBLOSUM62"))))
