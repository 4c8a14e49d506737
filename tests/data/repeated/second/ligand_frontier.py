"""
verdict: none
stack:
  explore("c1ccccc1C(=O)NC2CC2", limit=5000)
  expand(frontier, seen)
  apply_rules(parent)
  rule.RunReactants((mol,))
why: expand takes the next molecule out of the queue, which changes with seen in each call
"""
from collections import deque

from rdkit import Chem
from rdkit.Chem import AllChem

RULES = [
    AllChem.ReactionFromSmarts(s)
    for s in (
        "[c:1][H]>>[c:1]F",
        "[c:1][H]>>[c:1]C",
        "[C:1](=[O:2])[N:3]>>[C:1](=[O:2])[O][N:3]",
        "[CH2:1][CH2:2]>>[CH2:1]O[CH2:2]",
    )
]


def apply_rules(text):
    mol = Chem.AddHs(Chem.MolFromSmiles(text))
    children = set()
    for rule in RULES:
        for products in rule.RunReactants((mol,)):
            candidate = Chem.RemoveHs(products[0], sanitize=False)
            if Chem.SanitizeMol(candidate, catchErrors=True) == 0:
                children.add(Chem.MolToSmiles(candidate))
    return children


def expand(queue, visited):
    parent, depth = queue.popleft()
    for child in apply_rules(parent):
        if child not in visited:
            visited.add(child)
            queue.append((child, depth + 1))


def explore(seed, limit):
    frontier = deque([(seed, 0)])
    seen = {seed}
    while frontier and len(seen) < limit:
        expand(frontier, seen)
    return seen


if __name__ == "__main__":
    found = explore("c1ccccc1C(=O)NC2CC2", limit=5000)
    print(len(found))
