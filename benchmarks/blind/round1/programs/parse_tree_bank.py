"""Build a big tree of dependency parses and rescore each sentence."""
import gc
import random


class Node:
    def __init__(self, word):
        self.word = word
        self.kids = []
        self.parent = None


def sentence(r):
    nodes = [Node(r.randrange(5000)) for _ in range(14)]
    for i, n in enumerate(nodes[1:], 1):
        p = nodes[r.randrange(i)]
        p.kids.append(n)
        n.parent = p
    return nodes[0]


def depth(n):
    return 1 + max((depth(k) for k in n.kids), default=0)


def rescore(root, weights):
    total = 0.0
    stack = [root]
    while stack:
        n = stack.pop()
        total += weights[n.word] * depth(n)
        stack.extend(n.kids)
    return total


r = random.Random(0)
bank = [sentence(r) for _ in range(30_000)]
print("bank ready", flush=True)
weights = [r.random() for _ in range(5000)]
for batch in range(60):
    s = sum(rescore(root, weights) for root in r.sample(bank, 4000))
    gc.collect()
    if batch % 10 == 0:
        print(batch, round(s, 2), flush=True)
