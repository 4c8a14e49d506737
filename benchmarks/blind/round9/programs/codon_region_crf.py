"""A conditional random field for coding regions, trained by its exact likelihood."""
import numpy as np
import torch
from torch import nn

GENES, LENGTH, STATES, BATCH = 640, 300, 40, 64
UPDATES = 400


def genes(rng):
    jump = rng.dirichlet(np.full(STATES, 0.08), STATES)
    jump = 0.8 * np.eye(STATES) + 0.2 * jump
    emit = rng.dirichlet(np.full(64, 0.3), STATES)
    state = rng.integers(0, STATES, GENES)
    codons = np.empty((GENES, LENGTH), np.int64)
    states = np.empty((GENES, LENGTH), np.int64)
    jump_sum, emit_sum = jump.cumsum(1), emit.cumsum(1)
    for place in range(LENGTH):
        state = (rng.random((GENES, 1)) > jump_sum[state]).sum(1).clip(max=STATES - 1)
        states[:, place] = state
        codons[:, place] = (rng.random((GENES, 1)) > emit_sum[state]).sum(1).clip(max=63)
    return torch.from_numpy(codons), torch.from_numpy(states)


class RegionField(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Sequential(nn.Embedding(64, 64), nn.Tanh(), nn.Linear(64, STATES))
        self.jumps = nn.Parameter(torch.zeros(STATES, STATES))

    def loss(self, codons, states):
        scores = self.score(codons)
        chosen = scores.gather(2, states.unsqueeze(2)).sum((1, 2))
        chosen = chosen + self.jumps[states[:, :-1], states[:, 1:]].sum(1)
        peak = scores.amax(2, keepdim=True).detach()
        potentials = (scores - peak).exp().unbind(1)
        matrix = self.jumps.exp()
        forward = potentials[0]
        totals = []
        for potential in potentials[1:]:
            forward = (forward @ matrix) * potential
            total = forward.sum(1, keepdim=True)
            forward = forward / total
            totals.append(total)
        logs = peak.sum((1, 2)) + torch.cat(totals, 1).log().sum(1)
        return (logs + forward.sum(1).log() - chosen).mean() / LENGTH


def main():
    torch.manual_seed(19)
    codons, states = genes(np.random.default_rng(19))
    model = RegionField()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    generator = torch.Generator().manual_seed(1)
    for update in range(UPDATES):
        rows = torch.randint(GENES, (BATCH,), generator=generator)
        loss = model.loss(codons[rows], states[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if update % 100 == 99:
            print(f"update {update + 1}: loss per codon {loss.item():.4f}")


if __name__ == "__main__":
    main()
