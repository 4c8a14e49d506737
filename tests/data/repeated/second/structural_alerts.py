"""
verdict: same
stack:
  screen("library.smi")
  flags(mol)
  compile_alerts(ALERTS)
  Chem.MolFromSmarts(smarts)
call: compile_alerts(ALERTS)
loop: for mol in Chem.SmilesMolSupplier(path, titleLine=False)
why: the constant list of patterns is compiled again for each molecule
"""
import csv
from pathlib import Path

from rdkit import Chem
from rdkit.Chem.Descriptors import MolWt

with open(Path(__file__).with_name("alerts.csv")) as source:
    ALERTS = [(row["name"], row["smarts"]) for row in csv.DictReader(source)]


def compile_alerts(pairs):
    return {name: Chem.MolFromSmarts(smarts) for name, smarts in pairs}


def flags(molecule):
    found = []
    for name, pattern in compile_alerts(ALERTS).items():
        if molecule.HasSubstructMatch(pattern):
            found.append(name)
    return found


def screen(path):
    kept = []
    for mol in Chem.SmilesMolSupplier(path, titleLine=False):
        if mol is None or MolWt(mol) > 600:
            continue
        hits = flags(mol)
        if not hits:
            kept.append(Chem.MolToSmiles(mol))
    return kept


if __name__ == "__main__":
    passed = screen("library.smi")
    Path("clean.smi").write_text("\n".join(passed) + "\n")
    print(len(passed), "molecules pass")
