"""
verdict: none
stack:
  selector.select(12)
  self.score(marker)
  cross_val_score(self.estimator, self.X[columns], self.y, cv=8, scoring="roc_auc")
why: the inner loop goes through nearly the same markers, but the score depends on the markers chosen so far, which grow
"""
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


class ForwardSelector:
    def __init__(self, X, y):
        self.X = X
        self.y = y
        self.chosen = []
        self.estimator = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))

    def score(self, name):
        if name in self.chosen:
            return -np.inf
        columns = self.chosen + [name]
        return cross_val_score(self.estimator, self.X[columns], self.y, cv=8, scoring="roc_auc").mean()

    def keep(self, name):
        self.chosen.append(name)

    def select(self, count):
        curve = []
        for position in range(count):
            scores = {}
            for marker in self.X.columns:
                scores[marker] = self.score(marker)
            best = max(scores, key=scores.get)
            curve.append(scores[best])
            self.keep(best)
        return curve


def main():
    table = pd.read_csv("proteomics.csv", index_col=0)
    selector = ForwardSelector(table.drop(columns="case"), table["case"])
    for name, auc in zip(selector.chosen, selector.select(12)):
        print(name, auc)
    print(selector.chosen)


if __name__ == "__main__":
    main()
