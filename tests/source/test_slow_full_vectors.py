"""Singular value decompositions with vectors that the program does not use."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

SPECTRA = """
COUNT = 48
def batch(rng):
    return rng.normal(0, 1, (5000, COUNT))
def components(spectra, rank):
    u, s, vt = np.linalg.svd(spectra)
    scores = u[:, :rank] * s[:rank]
    return scores, vt[:rank], s.sum()
def main():
    rng = np.random.default_rng(5)
    return components(rng.normal(0, 1, (5000, COUNT)), 4)
"""
CALLS = ("components(rng.normal(0, 1, (5000, COUNT)), 4)", "np.linalg.svd(spectra)")


def names_of(*changes, calls=CALLS):
    source = SPECTRA
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in source
        source = source.replace(old, new)
        calls = [one.replace(old, new) for one in calls]
    return [one for one in found(source, *calls) if one.startswith("full_")]


def test_the_words():
    assert found(SPECTRA, *CALLS)["full_singular_vectors"] == {
        "new": "np.linalg.svd(spectra, full_matrices=False)"
    }


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        (("np.linalg.svd(spectra)", "np.linalg.svd(spectra, full_matrices=True)"),
         "full_singular_vectors"),
        (("vt[:rank]", "u[:, 0]"), "full_singular_vectors"),
        (("u, s, vt =", "u, s, _ =", "vt[:rank]", "u[:5, 0]"), "full_singular_vectors"),
        (("u[:, :rank] * s[:rank]", "vt[0]"), "full_singular_vectors"),
        (("(5000, COUNT)", "(COUNT, 5000)"), "full_singular_vectors"),
        (("(5000, COUNT)", "shape"), "full_singular_vectors_perhaps"),
        (("(5000, COUNT)", "shape", "    u, s", "    x = spectra - spectra.mean(axis=0)\n    u, s",
          "svd(spectra)", "svd(x)"), "full_singular_vectors"),
        # ---- which look like it ----
        (("(5000, COUNT)", "(COUNT, COUNT)"), None),
        (("(5000, COUNT)", "(60, COUNT)"), None),
        (("svd(spectra)", "svd(spectra, full_matrices=False)"), None),
        (("svd(spectra)", "svd(spectra, full_matrices=full)"), None),
        (("svd(spectra)", "svd(spectra, False)"), None),
        (("svd(spectra)", "svd(spectra, **options)"), None),
        (("vt[:rank]", "vt"), None),  # of a wide matrix, all rows may be needed
        (("vt[:rank]", "vt[-1]"), None),  # the null space
        (("vt[:rank]", "vt[rank:]"), None),
        (("vt[:rank]", "vt[:-1]"), None),
        (("vt[:rank]", "vt[rank]"), None),
        (("u[:, :rank] * s[:rank]", "u @ s"), None),
        (("u[:, :rank] * s[:rank]", "u[:rank]"), None),
        (("u[:, :rank] * s[:rank]", "u[:, -rank:]"), None),
        (("u, s, vt =", "parts ="), None),
        (("np.linalg.svd(spectra)", "np.linalg.svd(spectra, compute_uv=False)"), None),
        (("np.linalg.svd(spectra)", "own.linalg.svd(spectra)"), None),
    ],
)  # fmt: skip
def test_decompositions(changes, name):
    assert names_of(*changes) == ([name] if name else [])
