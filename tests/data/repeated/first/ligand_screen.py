"""
verdict: same
stack:
  screen("library.smi", "actives.smi", cutoff=0.55)
  max_similarity(mol, actives)
  reference_prints(refs)
  [fingerprint(m) for m in molecules]
  fingerprint(m)
  AllChem.GetMorganFingerprintAsBitVect(molecule, 3, nBits=4096)
call: reference_prints(refs)
loop: for smiles, name in entries(library)
why: the fingerprints of the same known actives are computed for each library molecule
"""
from rdkit import Chem, DataStructs
from rdkit.Chem import AllChem


def entries(path):
    with open(path) as handle:
        for line in handle:
            smiles, name = line.split()[:2]
            yield smiles, name


def fingerprint(molecule):
    return AllChem.GetMorganFingerprintAsBitVect(molecule, 3, nBits=4096)


def reference_prints(molecules):
    return [fingerprint(m) for m in molecules]


def max_similarity(candidate, refs):
    prints = reference_prints(refs)
    own = AllChem.GetMorganFingerprintAsBitVect(candidate, 3, 4096)
    return max(DataStructs.BulkTanimotoSimilarity(own, prints))


def screen(library, known, cutoff):
    actives = [Chem.MolFromSmiles(s) for s, _ in entries(known)]
    actives = [a for a in actives if a is not None]
    hits = []
    for smiles, name in entries(library):
        mol = Chem.MolFromSmiles(smiles)
        if mol is None or mol.GetNumHeavyAtoms() > 60:
            continue
        score = max_similarity(mol, actives)
        if score >= cutoff:
            hits.append((score, name))
    return sorted(hits, reverse=True)


if __name__ == "__main__":
    for s, n in screen("library.smi", "actives.smi", cutoff=0.55):
        print(f"{s:.3f} {n}")
