"""
verdict: same
stack:
  mark(sales)
  frame.apply(score_row, axis=1)
  lib:pandas/core/frame.py:DataFrame.apply
  lib:pandas/core/apply.py:FrameApply.apply_series_generator
  deviation(row, frame)
  regional_medians(full)
  table.groupby(["region", "rooms"])["price_m2"].median()
call: regional_medians(full)
loop: def score_row(row)
why: the medians of the whole, unchanged table are computed again for each row
"""
import numpy as np
import pandas as pd


def load(path):
    sales = pd.read_csv(path, parse_dates=["date"])
    sales = sales[sales["area"] > 10].reset_index(drop=True)
    sales["price_m2"] = sales["price"] / sales["area"]
    return sales


def regional_medians(table):
    return table.groupby(["region", "rooms"])["price_m2"].median()


def deviation(record, full):
    medians = regional_medians(full)
    return np.log(record["price_m2"] / medians[record["region"], record["rooms"]])


def mark(frame):
    def score_row(row):
        return deviation(row, frame)

    score = frame.apply(score_row, axis=1)
    spread = score.std()
    return frame.assign(score=score, outlier=score.abs() > 3 * spread)


if __name__ == "__main__":
    sales = load("sales.csv")
    marked = mark(sales)
    print(marked["outlier"].mean())
    marked[marked["outlier"]].to_csv("suspicious.csv", index=False)
