"""Computations with arrays of objects, and computations that look like them."""

from __future__ import annotations

import pytest

from source.test_costly_options import INSTALLED, search

SCORES = """
import numpy as np
import pandas as pd
def export(n, rng):
    values = np.empty((n, 2), dtype=object)
    values[:, 0] = rng.gamma(9.0, 0.11, n).tolist()
    return pd.DataFrame(values, columns=["creatinine", "age"])
def scores(df):
    cr, age = (df[c] for c in df.columns)
    out = pd.DataFrame(index=df.index)
    out["mdrd"] = 175 * cr ** -1.154 * age ** -0.203
    return out
def main(n, rng):
    df = export(n, rng)
    return scores(df)
"""
LINE = "175 * cr ** -1.154 * age ** -0.203"


def names_of(*changes):
    source, line = SCORES, LINE
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in source
        source, line = source.replace(old, new), line.replace(old, new)
    return search(source, line)


@pytest.fixture(autouse=True)
def _pandas(monkeypatch):
    both = INSTALLED | {"pandas", "decimal"}
    monkeypatch.setattr("source.test_costly_options.installed", lambda: both)


def test_the_place_that_chooses_objects():
    assert names_of()["object_arrays"] == [("train.py:5", "dtype=object", [11])]


@pytest.mark.parametrize(
    ("changes", "is_found"),
    [
        (("    df = export(n, rng)", "    df = export(n, rng).astype(object)"), True),
        (("(df[c] for c in df.columns)", "df['creatinine'], df['age']"), True),
        ((LINE, "cr / 2 + age"), True),
        ((LINE, "1.5 * age"), True),
        (("pd.DataFrame(values, ", "pd.DataFrame(values[:5], "), True),
        (
            ("return scores(df)", "return scores(df)\ndef interval(low, high):\n    return low"),
            True,
        ),
        # ---- which look like it ----
        (("import numpy as np", "import numpy as np\nfrom pandas import Interval"), False),
        (("dtype=object", "dtype=float"), False),
        (("    df = export(n, rng)", "    df = export(n, rng).astype(float)"), False),
        (("    df = export(n, rng)", "    df = export(n, rng).infer_objects()"), False),
        (
            ("    df = export(n, rng)", "    df = export(n, rng)\n    df['age'] = rng.random(n)"),
            False,
        ),
        (("values, columns", "values, dtype=float, columns"), False),
        ((LINE, "cr + age"), False),  # these may be texts
        ((LINE, "2 * age"), False),
        ((LINE, "cr == 1.5"), False),
        ((LINE, "cr.mean() * 1.5"), False),
        (("import pandas", "from decimal import Decimal\nimport pandas"), False),
        (("scores(df)\n", "scores(df) if n else scores(n)\n"), False),
    ],
)
def test_computations(changes, is_found):
    assert ("object_arrays" in names_of(*changes)) is is_found
