"""Pore pressure in an earth dam while the reservoir is drawn down: implicit steps on a 3-D grid."""
import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

NX, NY, NZ = 28, 28, 28
STEPS = 600
STEP_HOURS = 6.0


def conductivity(rng):
    field = np.exp(0.6 * rng.normal(size=(NX, NY, NZ)))
    field[NX // 3: NX // 3 + 4] *= 0.05          # clay core
    return field


def storage_matrix(k):
    """Finite-volume matrix with harmonic means between cells."""
    number = np.arange(NX * NY * NZ).reshape(NX, NY, NZ)
    rows, cols, vals = [], [], []
    for axis in range(3):
        a = np.take(number, range(number.shape[axis] - 1), axis).ravel()
        b = np.take(number, range(1, number.shape[axis]), axis).ravel()
        flat = k.ravel()
        link = 2 * flat[a] * flat[b] / (flat[a] + flat[b])
        rows += [a, b, a, b]
        cols += [a, b, b, a]
        vals += [link, link, -link, -link]
    size = number.size
    return sparse.csc_matrix((np.concatenate(vals), (np.concatenate(rows), np.concatenate(cols))),
                             shape=(size, size)), number


def main():
    rng = np.random.default_rng(44)
    flow, number = storage_matrix(conductivity(rng))
    upstream = number[0].ravel()
    downstream = number[-1].ravel()
    leak = np.zeros(number.size)
    leak[upstream] = 5.0
    leak[downstream] = 5.0
    capacity = 0.8 / STEP_HOURS * 24
    system = (flow + sparse.diags(leak + capacity)).tocsc()
    factor = splu(system, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0,
                  options={"SymmetricMode": True})
    print("unknowns:", number.size, "entries of the factors:", factor.nnz, flush=True)

    head = np.full(number.size, 30.0)
    lowest = []
    for step in range(STEPS):
        level = 30.0 - 22.0 * min(1.0, step / 120.0)
        right = capacity * head
        right[upstream] += 5.0 * level
        right[downstream] += 5.0 * 2.0
        head = factor.solve(right)
        core = head.reshape(NX, NY, NZ)[NX // 3 + 2]
        lowest.append(core.mean() - level)
        if (step + 1) % 150 == 0:
            print("day %.0f: level %.1f, core head %.3f"
                  % ((step + 1) * STEP_HOURS / 24, level, core.mean()), flush=True)
    print("largest excess head in the core: %.3f m at step %d" % (max(lowest), int(np.argmax(lowest))))


if __name__ == "__main__":
    main()
