"""
verdict: set
stack:
  similarity_matrix(read_molecules("set.sdf"))
  shape_vector(other)
  rdMolDescriptors.GetUSRCAT(mol)
call: shape_vector(other)
loop: for i, first in enumerate(mols)
why: for each row of the matrix the descriptors of the same molecules are computed again
"""
import numpy as np
from rdkit import Chem
from rdkit.Chem import AllChem, rdMolDescriptors


def read_molecules(path):
    mols = []
    for mol in Chem.SDMolSupplier(path, removeHs=False):
        if mol is None:
            continue
        if mol.GetNumConformers() == 0:
            AllChem.EmbedMolecule(mol, randomSeed=7)
        mols.append(mol)
    return mols


def shape_vector(mol):
    return np.array(rdMolDescriptors.GetUSRCAT(mol))


def similarity(u, v):
    return 1.0 / (1.0 + np.abs(u - v).mean())


def similarity_matrix(mols):
    n = len(mols)
    table = np.eye(n)
    for i, first in enumerate(mols):
        u = shape_vector(first)
        for j, other in enumerate(mols):
            if i == j:
                continue
            table[i, j] = similarity(u, shape_vector(other))
    return table


if __name__ == "__main__":
    np.save("usr.npy", similarity_matrix(read_molecules("set.sdf")))
