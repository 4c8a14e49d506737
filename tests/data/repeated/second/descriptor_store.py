"""
verdict: none
stack:
  study.learning_curve([25, 50, 100, 200])
  self.descriptors(smiles)
  function(mol)
why: descriptors keeps its results in a dictionary, so each molecule is computed once although the inner loop meets it again
"""
import numpy as np
import pandas as pd
from rdkit import Chem
from rdkit.Chem import Descriptors
from sklearn.linear_model import RidgeCV


class Study:
    def __init__(self, table):
        self.table = table
        self._known = {}

    def descriptors(self, text):
        key = Chem.CanonSmiles(text)
        row = self._known.get(key)
        if row is None:
            mol = Chem.MolFromSmiles(key)
            row = np.nan_to_num([function(mol) for _, function in Descriptors.descList])
            self._known[key] = row
        return row

    def learning_curve(self, sizes):
        scores = {}
        y = self.table["activity"].to_numpy()
        for size in sizes:
            rows = []
            for smiles in self.table["smiles"]:
                rows.append(self.descriptors(smiles))
            X = np.clip(np.stack(rows), -1e4, 1e4)
            model = RidgeCV(np.logspace(-3, 3, 13)).fit(X[:size], y[:size])
            scores[size] = model.score(X[size:], y[size:])
        return scores


if __name__ == "__main__":
    study = Study(pd.read_csv("activity.csv"))
    print(study.learning_curve([25, 50, 100, 200]))
