"""Modes of a bridge deck, sound and with three kinds of damage.

The deck is a grid of beams.  Damage softens some members; the complete set
of modes is needed because the identification compares energy shares over
the whole spectrum.
"""
import numpy as np
from scipy import linalg

NX, NY = 70, 40
CASES = {"sound": (), "pier crack": ((20, 4, 0.5), (21, 4, 0.6)),
         "worn joint": ((37, 20, 0.2),), "corroded edge": ((55, 0, 0.7), (56, 0, 0.7))}


def stiffness(damage):
    """Dense stiffness and mass of the deck, piers included."""
    n = NX * NY
    index = np.arange(n).reshape(NX, NY)
    k = np.zeros((n, n))

    def couple(a, b, value):
        np.add.at(k, (a, a), value)
        np.add.at(k, (b, b), value)
        np.add.at(k, (a, b), -value)
        np.add.at(k, (b, a), -value)

    soft = np.ones((NX, NY))
    for i, j, factor in damage:
        soft[i:i + 3, j:j + 3] *= factor
    couple(index[:-1].ravel(), index[1:].ravel(), 90.0 * soft[:-1].ravel())
    couple(index[:, :-1].ravel(), index[:, 1:].ravel(), 35.0 * soft[:, :-1].ravel())
    couple(index[:-2].ravel(), index[2:].ravel(), 14.0 * soft[1:-1].ravel())
    piers = index[::25].ravel()
    np.add.at(k, (piers, piers), 400.0)
    k[np.diag_indices(n)] += 0.05
    mass = 1.0 + 0.3 * (np.arange(n) % NY < 3)
    return k, mass


def modes(k, mass):
    """All frequencies and mass-normalised mode shapes."""
    scale = 1.0 / np.sqrt(mass)
    values, vectors = linalg.eigh(k * scale[:, None] * scale[None, :],
                                  driver="evd", overwrite_a=True,
                                  check_finite=False)
    return np.sqrt(values), vectors * scale[:, None]


def main():
    reference = None
    for name, damage in CASES.items():
        k, mass = stiffness(damage)
        omega, shape = modes(k, mass)
        edge = np.einsum("ij,i->j", shape[:NY] ** 2, mass[:NY])
        if reference is None:
            reference = (omega, edge)
        shift = np.sum((omega - reference[0]) ** 2) ** 0.5
        change = np.abs(edge - reference[1]).sum()
        print(f"{name:14s} first {omega[0]:.4f}, last {omega[-1]:.4f} rad/s, "
              f"shift {shift:.5f}, edge share {edge.sum():.4f}, "
              f"changed {'yes' if change > 1e-3 else 'no'}")


if __name__ == "__main__":
    main()
