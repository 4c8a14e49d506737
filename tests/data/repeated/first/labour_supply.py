"""
verdict: set
stack:
  estimate(pd.read_parquet("households.parquet"))
  log_likelihood(households, np.array([a, b]))
  budget_set(hh, HOURS)
  [net_income(household.wage * h, household.children) for h in hours]
  net_income(household.wage * h, household.children)
call: budget_set(hh, HOURS)
loop: for a, b in itertools.product(np.linspace(0.1, 2, 20), np.linspace(0.1, 2, 20))
why: the net incomes of each household do not depend on the preference parameters
"""
import itertools

import numpy as np
import pandas as pd

HOURS = (0, 10, 20, 30, 40, 50)
BRACKETS = [(0, 0.0), (11000, 0.2), (30000, 0.32), (60000, 0.42)]


def net_income(gross, children):
    yearly, tax = gross * 52, 0.0
    for (low, rate), (high, _) in zip(BRACKETS, BRACKETS[1:] + [(np.inf, 0)]):
        tax += rate * max(0.0, min(yearly, high) - low)
    benefit = max(0.0, 2500.0 * children - 0.3 * yearly) + max(0.0, 6000 - 0.6 * yearly)
    return (yearly - tax + benefit) / 52


def budget_set(household, hours):
    return np.array([net_income(household.wage * h, household.children) for h in hours])


def log_likelihood(rows, theta):
    total = 0.0
    leisure = np.log(80.0 - np.array(HOURS))
    for hh in rows:
        utility = theta[0] * np.log(budget_set(hh, HOURS) + 1) + theta[1] * leisure
        utility -= utility.max()
        total += utility[hh.choice] - np.log(np.exp(utility).sum())
    return total


def estimate(table):
    households = list(table.itertuples(index=False))
    best = (-np.inf, None)
    for a, b in itertools.product(np.linspace(0.1, 2, 20), np.linspace(0.1, 2, 20)):
        value = log_likelihood(households, np.array([a, b]))
        best = max(best, (value, (a, b)))
    return best


if __name__ == "__main__":
    print(estimate(pd.read_parquet("households.parquet")))
