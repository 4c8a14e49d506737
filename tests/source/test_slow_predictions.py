"""Models that predict one row in each iteration of a loop, and programs that look like them."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

LIBRARY = "lib:sklearn/svm/_base.py:predict"


@pytest.mark.parametrize(
    ("loop", "row", "advice"),
    [
        ("for i in range(len(x)):", "x[i].reshape(1, -1)",
         ("predictions = model.predict(x)", "predictions[[i]]")),
        ("for i in range(len(x)):", "x[[i]]",
         ("predictions = model.predict(x)", "predictions[[i]]")),
        ("for i in range(len(x)):", "x[i:i + 1]",
         ("predictions = model.predict(x)", "predictions[[i]]")),
        ("for i in range(len(x)):", "np.array([x[i]])",
         ("predictions = model.predict(x)", "predictions[[i]]")),
        ("for i in range(len(x)):", "x[i][None, :]",
         ("predictions = model.predict(x)", "predictions[[i]]")),
        ("for i in range(len(table)):", "table.iloc[[i]]",
         ("predictions = model.predict(table)", "predictions[[i]]")),
        ("for i, row in enumerate(x):", "np.atleast_2d(row)",
         ("predictions = model.predict(x)", "predictions[[i]]")),
        ("for row in x:", "[row]",
         ("predictions = model.predict(x)", "for number, row in enumerate(x):")),
        ("for row, label in zip(x, y):", "row.reshape((1, -1))",
         ("predictions = model.predict(x)", "for number, (row, label) in enumerate(zip(x, y)):")),
        ("for i, row in table.iterrows():", "row[NAMES].to_frame().T",
         ("predictions = model.predict(table[NAMES])",
          "for number, (i, row) in enumerate(table.iterrows()):")),
        ("for i, row in table.iterrows():", "[[row['a'], row['b']]]", ()),
        ("for i in range(len(x)):", "scaler.transform(x[[i]])", ()),
        # ---- which look like it ----
        ("for part in np.array_split(x, 9):", "part", None),
        ("for i in range(0, len(x), 64):", "x[i:i + 64]", None),
        ("for i in range(8):", "x[[i]]", None),  # few rows
        ("for _ in range(len(x)):", "x[[0]]", None),  # always the same one
        ("while x[0, 0] > 0:", "x[[0]]", None),
        ("for row in sys.stdin:", "[row]", None),
        ("for row in stream():", "[row]", None),
    ],
)  # fmt: skip
def test_predictions_of_single_rows(loop, row, advice):
    source = f"""
    NAMES = ["a", "b"]
    def stream():
        while True: yield instrument.get()
    def main(model, scaler):
        x, y, table = np.load("x.npy"), np.load("y.npy"), pd.read_csv("t.csv")
        for i in range(3): print(i)
        {loop}
            print(model.predict({row})[0])
    """
    words = found(source, f"model.predict({row})", LIBRARY)
    if advice is None:
        assert words == {}
        return
    (said,) = words.values()
    assert all(one in (said["before"], said["new"], said.get("header")) for one in advice)
    assert found(source, f"model.predict({row})") == {}  # not of a library that it knows


@pytest.mark.parametrize(
    ("body", "is_found"),
    [
        ("y = model.predict(x[[i]])", True),
        ("y = model.predict(x[[i]])\n        if y > 0: seen.append(i)", True),
        ("row = np.array([[x[i], y]])\n        y = model.predict(row)", False),
        ("y = model.predict(x[[i]])\n        x[i + 1] = y", False),
        ("y = model.predict(x[[i]])\n        model.partial_fit(x[[i]], y)", False),
        ("model = models[i]\n        y = model.predict(x[[i]])", False),
        ("y = model.predict(x[[i]])\n        learn(model, x, i)", False),
        ("y = model.predict(x[[i]])\n        time.sleep(1)", False),
        ("y = model.predict(x[[i]])\n        if y > 0: break", False),
        ("y = model.predict(x[[i]])\n        yield y", False),
        ("model.fit(np.delete(x, i, 0), y)\n        z = model.predict(x[[i]])", False),
    ],
)
def test_a_prediction_that_depends_on_the_one_before(body, is_found):
    source = (
        "def learn(model, x, i): model.partial_fit(x[[i]])\n"
        "def main(model, models, y):\n"
        "    x = np.load('x.npy')\n"
        f"    for i in range(len(x)):\n        {body}\n"
    )
    call = "model.predict(row)" if "row =" in body else "model.predict(x[[i]])"
    assert bool(found(source, call, LIBRARY)) is is_found


def test_a_function_that_predicts_one_row():
    source = """
    def score(model, row):
        features = row.reshape(1, -1)
        return model.predict(features)[0]
    def main(model):
        x = np.load("x.npy")
        return [score(model, row) for row in x]
    """
    words = found(source, "score(model, row)", "model.predict(features)", LIBRARY)
    assert words["rows_predicted"]["loop"] == "the expression at train.py:14"
    table = """
    def score(row): return MODEL.predict([[row["a"], row["b"]]])[0]
    def main(): return pd.read_csv("x.csv").apply(score, axis=1)
    """
    active = 'pd.read_csv("x.csv").apply(score, axis=1)'
    call = 'MODEL.predict([[row["a"], row["b"]]])'
    assert found(table, active, "lib:pandas/core/apply.py:f", call, LIBRARY)
    # An optimiser asks for one point after the other.
    assert found(table, active, "lib:scipy/optimize/_x.py:f", call, LIBRARY) == {}
