"""Voting blocs of an assembly: agreements of members over the roll calls of seven sessions."""
import numpy as np
from scipy.sparse.csgraph import connected_components

MEMBERS = 1000
ROLL_CALLS = 700
SESSIONS = 7
SHUFFLES = 60


def roll_calls(session):
    rng = np.random.default_rng(60 + session)
    party = rng.integers(0, 4, MEMBERS)
    line = rng.choice([-1, 1], size=(4, ROLL_CALLS))
    loyal = rng.random((MEMBERS, ROLL_CALLS)) < 0.72
    own = rng.choice([-1, 1], size=(MEMBERS, ROLL_CALLS))
    present = rng.random((MEMBERS, ROLL_CALLS)) < 0.93
    return party, np.where(loyal, line[party], own) * present


def agreement(votes):
    return votes @ votes.T


def allied(balance):
    cut = np.percentile(balance, 80)
    links = (balance > cut).astype(np.int64)
    np.fill_diagonal(links, 0)
    return np.maximum(links, links.T)


def closure(links):
    walks = links @ links
    triangles = (walks * links).sum(axis=1)
    degree = links.sum(axis=1)
    return triangles / np.maximum(degree * (degree - 1), 1), degree


def modularity(links, party, rng):
    degree = links.sum(axis=1)
    total = degree.sum()
    row, col = np.nonzero(links)
    real = (party[row] == party[col]).sum() / total
    chance = []
    for _ in range(SHUFFLES):
        mixed = rng.permutation(party)
        share = np.bincount(mixed, degree, minlength=4) / total
        chance.append((mixed[row] == mixed[col]).sum() / total - (share ** 2).sum())
    share = np.bincount(party, degree, minlength=4) / total
    return real - (share ** 2).sum(), float(np.std(chance))


def main():
    rng = np.random.default_rng(1)
    for session in range(SESSIONS):
        party, votes = roll_calls(session)
        balance = agreement(votes)
        links = allied(balance)
        local, degree = closure(links)
        quality, noise = modularity(links, party, rng)
        blocs, _ = connected_components(links, directed=False)
        spectrum = np.linalg.eigvalsh(balance.astype(np.float64))
        if session % 3 == 0:
            print(f"session {session}: {blocs} blocs, closure {local.mean():.4f}, degree {degree.mean():.1f}, "
                  f"modularity {quality:.4f} (+-{noise:.5f}), leading modes {spectrum[-1] / spectrum.sum():.4f}")


if __name__ == "__main__":
    main()
