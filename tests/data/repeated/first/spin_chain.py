"""
verdict: same
stack:
  magnetisation(sites=11, steps=400)
  evolve(psi, ham, DT)
  np.linalg.eigh(h)
call: np.linalg.eigh(h)
loop: for step in range(steps)
why: the Hamiltonian does not depend on time and is diagonalised in each step; only the state changes
"""
import numpy as np

DT = 0.02
SX = np.array([[0, 1], [1, 0]], dtype=complex)
SZ = np.diag([1.0, -1.0]).astype(complex)


def embed(op, site, n):
    full = np.array([[1.0]], dtype=complex)
    for k in range(n):
        full = np.kron(full, op if k == site else np.eye(2))
    return full


def hamiltonian(n, coupling=1.0, transverse=0.7):
    total = np.zeros((2**n, 2**n), dtype=complex)
    for k in range(n - 1):
        total -= coupling * embed(SZ, k, n) @ embed(SZ, k + 1, n)
    for k in range(n):
        total -= transverse * embed(SX, k, n)
    return total


def evolve(state, h, dt):
    energy, modes = np.linalg.eigh(h)
    return modes @ (np.exp(-1j * energy * dt) * (modes.conj().T @ state))


def magnetisation(sites, steps):
    ham = hamiltonian(sites)
    psi = np.zeros(2**sites, dtype=complex)
    psi[0] = 1.0
    observable = embed(SZ, sites // 2, sites)
    series = []
    for step in range(steps):
        psi = evolve(psi, ham, DT)
        psi /= np.linalg.norm(psi)
        series.append((psi.conj() @ observable @ psi).real)
    return np.array(series)


if __name__ == "__main__":
    np.savetxt("mz.txt", magnetisation(sites=11, steps=400))
