"""
verdict: none
stack:
  interval(gini_of_sample, survey, 2000)
  statistic(values)
  np.sort(drawn)
why: the statistic draws a random sample from the global generator, so the same call gives another value each time
"""
import numpy as np
import pandas as pd


def gini_of_sample(incomes):
    drawn = np.random.choice(incomes, size=len(incomes), replace=True)
    ordered = np.sort(drawn)
    ranks = np.arange(1, len(ordered) + 1)
    total = ordered.sum()
    return 2 * (ranks * ordered).sum() / (len(ordered) * total) - (len(ordered) + 1) / len(ordered)


def interval(statistic, values, repeats, level=0.95):
    results = np.empty(repeats)
    for i in range(repeats):
        results[i] = statistic(values)
    tail = (1 - level) / 2
    return np.quantile(results, [tail, 0.5, 1 - tail])


def main():
    np.random.seed(20240501)
    table = pd.read_csv("households.csv")
    survey = table["income"].clip(lower=0).to_numpy()
    low, median, high = interval(gini_of_sample, survey, 2000)
    print(f"Gini {median:.4f} [{low:.4f}, {high:.4f}]")


if __name__ == "__main__":
    main()
