"""
verdict: none
stack:
  convert(sys.stdin, sys.stdout)
  lift(chrom, int(start))
  chain_table("hg19", target)
  pd.read_csv(path, sep=r"\s+", names=FIELDS, comment="#")
why: lru_cache keeps the table, so it is read only in the first iteration
"""
import functools
import sys

import pandas as pd

FIELDS = ["chrom", "start", "end", "shift"]


@functools.lru_cache(maxsize=None)
def chain_table(source, goal):
    path = f"chains/{source}To{goal.capitalize()}.txt.gz"
    table = pd.read_csv(path, sep=r"\s+", names=FIELDS, comment="#")
    return {c: rows.sort_values("start") for c, rows in table.groupby("chrom")}


def lift(chrom, position, target="hg38"):
    blocks = chain_table("hg19", target).get(chrom)
    if blocks is None:
        return None
    k = blocks["start"].searchsorted(position, side="right") - 1
    if k < 0 or blocks["end"].iloc[k] <= position:
        return None
    return position + int(blocks["shift"].iloc[k])


def convert(lines, out):
    lost = 0
    for line in lines:
        chrom, start, end, *rest = line.rstrip("\n").split("\t")
        a, b = lift(chrom, int(start)), lift(chrom, int(end))
        if a is None or b is None:
            lost += 1
            continue
        print(chrom, a, b, *rest, sep="\t", file=out)
    print(lost, "lost", file=sys.stderr)


if __name__ == "__main__":
    convert(sys.stdin, sys.stdout)
