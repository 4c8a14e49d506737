"""Products of matrices of integers, and products that look like them."""

from __future__ import annotations

import pytest

from source.test_costly_options import search

SOURCE = """
import numpy as np
def counts_of(table):
    return table.astype(np.int64)
def main(table, real, rng):
    a = {a}
    b = {b}
    return {product}
"""


@pytest.mark.parametrize(
    ("a", "b", "product", "is_found"),
    [
        ("table.astype(np.int64)", "a.T", "a @ b", True),
        ("counts_of(table)", "0", "a.T @ a", True),
        ("np.zeros((9, 9), dtype=int)", "a + a.T", "np.dot(a, b)", True),
        ("np.array(table, dtype=bool)", "table.astype('int32')", "a.dot(b)", True),
        ("table.astype(np.int8)", "np.where(a > 0, a, 2 * a)", "np.matmul(b[:5], a)", False),
        ("table.astype(np.int8)", "2 * a - 1", "np.matmul(b[:5], a)", True),
        # ---- which look like it ----
        ("table.astype(np.float64)", "a.T", "a @ b", False),
        ("table.astype(np.int64)", "real.astype(np.float32)", "a @ b", False),
        ("table.astype(np.int64)", "real", "a @ b", False),  # the type is not known
        ("table.astype(np.int64)", "a / 2", "b @ b", False),
        ("table.astype(np.int64)", "a * 0.5", "b @ b", False),
        ("table.astype(np.int64)", "a - a.mean(axis=0)", "b @ b", False),
        ("table.astype(np.int64)", "np.sqrt(a)", "b @ b", False),
        ("table.astype(np.int64)", "a.T", "a * b", False),
        ("table.astype(np.int64)", "a.T", "a.sum(axis=0)", False),
        ("cp.zeros((9, 9), dtype=np.int64)", "a.T", "a @ b", False),
        ("int(table)", "len(real)", "a * b", False),
    ],
)
def test_products(a, b, product, is_found):
    source = SOURCE.format(a=a, b=b, product=product)
    source = (
        source.replace("import numpy", "import cupy as cp\nimport numpy") if "cp." in a else source
    )
    names = search(source, f"{product}") if "cp." not in a else search(source, product, cupy="x=1")
    assert ("integer_products" in names) is is_found


def test_the_place_that_chooses_the_type():
    source = SOURCE.format(a="counts_of(table)", b="a.T", product="b @ a")
    assert search(source, "b @ a")["integer_products"] == [("train.py:4", "dtype=np.int64", [8])]
