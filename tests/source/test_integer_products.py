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
        ("table.astype(np.int8)", "np.where(a > 0, a, 2 * a)", "np.matmul(b[:5], a)", True),
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


VOTES = """
import numpy as np
def roll_calls(rng):
    party = rng.integers(0, 4, 900)
    line = rng.choice([-1, 1], size=(4, 700))
    present = rng.random((900, 700)) < 0.9
    return party, np.where(rng.random((900, 700)) < 0.7, line[party], 1) * present
def main(rng):
    party, votes = roll_calls(rng)
    return votes @ votes.T
"""
CHAINS = """
import numpy as np
def chains(links):
    walks = links
    for _ in range(9):
        walks = walks @ links
    return walks
def main(n):
    return chains(np.zeros((n, n), dtype=np.int64))
"""


class TestIntegersWithoutTheNameOfAType:
    def test_drawn_numbers_comparisons_and_one_of_several_results(self):
        found = search(VOTES, "votes @ votes.T")["integer_products"]
        assert found == [("train.py:5", "rng.choice([-1, 1], size=(4, 700))", [10])]

    def test_a_module_beside_other_arrays(self):
        source = VOTES.replace("import numpy", "from scipy.sparse.csgraph import f\nimport numpy")
        assert "integer_products" in search(source, "votes @ votes.T")

    def test_a_product_that_a_loop_multiplies_again(self):
        found = search(CHAINS, "walks @ links")["integer_products"]
        assert found == [("train.py:9", "dtype=np.int64", [6])]

    @pytest.mark.parametrize(
        ("a", "is_found"),
        [
            ("table > 0.5", True),
            ("~(table > 0.5) & (table < 2)", True),
            ("rng.poisson(3.0, (900, 900))", True),
            ("rng.permutation(real.astype(int))", True),
            ("np.isfinite(table)", True),
            # ---- which look like it ----
            ("rng.choice([0.5, 1.5], size=(9, 9))", False),
            ("rng.choice(real, size=(9, 9))", False),
            ("rng.integers(0, 9, (9, 9)) / 9", False),
            ("np.where(table > 0, real, 0)", False),
            ("(table > 0.5) * real", False),
            ("rng.poisson(3.0, (9, 9)).astype(float)", False),
            ("rng.random((9, 9))", False),
            ("rng.integers(0, 9, 9, dtype=np.float64)", False),
            ("real in table", False),
        ],
    )
    def test_one_array(self, a, is_found):
        source = SOURCE.format(a=a, b="a.T", product="a @ b")
        assert ("integer_products" in search(source, "a @ b")) is is_found

    @pytest.mark.parametrize(
        "change",
        [
            ("votes @ votes.T", "(votes / 2) @ votes.T"),
            ("return party,", "return party, 1,"),
            ("return party, np.where", "return np.random.rand(9, 9), 0.5 * np.where"),
            ("rng.choice([-1, 1]", "rng.choice([-1.0, 1.0]"),
            ("import numpy as np", "import numpy as np\nimport torch"),
            ("import numpy as np", "import numpy as np\nfrom scipy import sparse"),
            ("line[party], 1)", "line[party], 1.0)"),
        ],
    )
    def test_votes_that_may_be_real(self, change):
        source = VOTES.replace(*change)
        (product,) = (line.strip() for line in source.splitlines() if " @ " in line)
        assert search(source, product, torch="x = 1") == {}

    @pytest.mark.parametrize(
        "change",
        [
            ("walks = walks @ links", "walks = (walks @ links) / 2"),
            ("walks = walks @ links", "walks = walks @ links; walks = scaled(walks)"),
            ("dtype=np.int64", "dtype=float"),
            ("walks = links", "walks = 0.5 * links"),
        ],
    )
    def test_chains_that_become_real(self, change):
        source = CHAINS.replace(*change)
        (product,) = (line.strip() for line in source.splitlines() if " @ " in line)
        assert search(source, product) == {}
