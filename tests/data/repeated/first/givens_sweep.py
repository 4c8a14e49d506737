"""
verdict: none
stack:
  main("coupling.npy")
  np.linalg.eigvalsh(matrix)
why: the matrix is changed in each iteration through a view that another function writes to
"""
import numpy as np


def block_view(full, index, size):
    start = index * size
    return full[start : start + size, start : start + size]


def soften(block, factor):
    diag = np.einsum("ii->i", block)
    diag *= factor
    block[...] = (block + block.T) / 2


def main(path, size=50):
    matrix = np.load(path)
    blocks = len(matrix) // size
    spectra = []
    for k in range(blocks):
        part = block_view(matrix, k, size)
        soften(part, 0.95)
        values = np.linalg.eigvalsh(matrix)
        spectra.append(values[:10])
        if values[0] < 0:
            break
    np.save("spectra.npy", np.array(spectra))


if __name__ == "__main__":
    main("coupling.npy")
