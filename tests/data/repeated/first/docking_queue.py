"""
verdict: none
stack:
  work_off(fill("ligands.smi"))
  next_result(jobs, RECEPTOR)
  embed(pending.get_nowait(), attempts=50)
  AllChem.EmbedMultipleConfs(mol, attempts, randomSeed=1)
why: each call takes another job from the queue, and one failed job is put back
"""
import queue

from rdkit import Chem
from rdkit.Chem import AllChem

RECEPTOR = Chem.MolFromPDBFile("receptor.pdb")


def fill(path):
    jobs = queue.Queue()
    with open(path) as handle:
        for line in handle:
            jobs.put((line.split()[0], 0))
    return jobs


def embed(job, attempts):
    smiles, tried = job
    mol = Chem.AddHs(Chem.MolFromSmiles(smiles))
    AllChem.EmbedMultipleConfs(mol, attempts, randomSeed=1)
    return mol, smiles, tried


def next_result(pending, receptor):
    mol, smiles, tried = embed(pending.get_nowait(), attempts=50)
    if mol.GetNumConformers() == 0:
        if tried == 0:
            pending.put((smiles.split(".")[0], 1))
        return None
    energies = [e for ok, e in AllChem.MMFFOptimizeMoleculeConfs(mol) if ok == 0]
    ratio = mol.GetNumHeavyAtoms() / receptor.GetNumHeavyAtoms()
    return smiles, min(energies, default=None), ratio


def work_off(jobs):
    results = []
    while not jobs.empty():
        result = next_result(jobs, RECEPTOR)
        if result is not None:
            results.append(result)
    return results


if __name__ == "__main__":
    print(len(work_off(fill("ligands.smi"))))
