"""
verdict: set
stack:
  cross_validate(frame, args.bits)
  featurise(smiles, n_bits)
  AllChem.EmbedMolecule(mol, randomSeed=7)
call: featurise(smiles, n_bits)
loop: for train, test in KFold(10, shuffle=True, random_state=0).split(data)
why: every fold computes the fingerprints and conformers (with a fixed seed) of all molecules of the table again
"""
import argparse

import numpy as np
import pandas as pd
from rdkit import Chem
from rdkit.Chem import AllChem, rdMolDescriptors
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import KFold


def featurise(text, bits):
    mol = Chem.AddHs(Chem.MolFromSmiles(text))
    AllChem.EmbedMolecule(mol, randomSeed=7)
    shape = rdMolDescriptors.CalcWHIM(mol)
    fingerprint = AllChem.GetMorganFingerprintAsBitVect(mol, 3, nBits=bits)
    return np.concatenate([np.array(fingerprint), shape])


def cross_validate(data, n_bits):
    scores = []
    y = data["logS"].to_numpy()
    for train, test in KFold(10, shuffle=True, random_state=0).split(data):
        X = np.array([featurise(smiles, n_bits) for smiles in data["smiles"]])
        forest = RandomForestRegressor(200, random_state=0)
        forest.fit(X[train], y[train])
        scores.append(forest.score(X[test], y[test]))
    return np.array(scores)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("csv")
    parser.add_argument("--bits", type=int, default=2048)
    args = parser.parse_args()
    frame = pd.read_csv(args.csv)
    result = cross_validate(frame, args.bits)
    print(f"R2 {result.mean():.3f} +- {result.std():.3f}")
