"""
verdict: none
stack:
  main("panel.csv", "growth")
  strongest(panel, target)
  frame.corr(method="spearman")
why: the table is changed in place, a function deletes one column and adds a new one in each round
"""
import numpy as np
import pandas as pd


def strongest(frame, outcome):
    table = frame.corr(method="spearman")
    return table[outcome].drop(outcome).abs().idxmax()


def project_out(df, column, keep):
    x = df.pop(column)
    x = x - x.mean()
    denominator = (x**2).sum()
    if denominator == 0:
        return 0.0
    beta = (x * df[keep]).sum() / denominator
    for name in list(df.columns):
        df[name] -= x * (x * df[name]).sum() / denominator
    return beta


def main(path, target, limit=0.01):
    panel = pd.read_csv(path).select_dtypes(np.number).dropna()
    panel -= panel.mean()
    chosen = {}
    start = panel[target].var()
    while panel.shape[1] > 2:
        name = strongest(panel, target)
        before = panel[target].var()
        chosen[name] = project_out(panel, name, keep=target)
        if before - panel[target].var() < limit * start:
            break
    return chosen


if __name__ == "__main__":
    print(main("panel.csv", "growth"))
