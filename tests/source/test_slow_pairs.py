"""Double loops that only count how pairs of values compare, and programs that look like them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import pytest

from source.test_slow_calls import found

SOURCE = """
def quality(score, blocked, extra):
    high = [s for s, b in zip(score, blocked) if b]
    low = [s for s, b in zip(score, blocked) if not b]
    wins, ties, log = 0, 0, []
    for a in {first}:
{body}
    return wins, ties
"""
LOOP = """        for b in {second}:
            {lines}
"""
AUC = ("if a > b:", "    wins += 1.0", "elif a == b:", "    wins += 0.5")


def source_of(lines, first="high", second="low"):
    body = LOOP.format(second=second, lines="\n            ".join(lines))
    return SOURCE.format(first=first, body=body)


@pytest.mark.parametrize(
    ("lines", "adds"),
    [
        (AUC, "wins += below + 0.5 * (at_most - below)"),
        (("if b < a:", "    wins += 1"), "wins += below"),
        (("if b <= a:", "    wins += 1"), "wins += at_most"),
        (("if a < b:", "    wins += 1"), "wins += len(ordered) - at_most"),
        (("if a <= b:", "    wins += 2"), "wins += 2 * (len(ordered) - below)"),
        (("if a == b:", "    ties += 1"), "ties += at_most - below"),
        (("wins += a > b", "ties += a == b"), "wins += below; ties += at_most - below"),
        (("if a > b:", "    wins += 1", "else:", "    ties += 1"),
         "wins += below; ties += len(ordered) - below"),
        (("if a >= b:", "    wins += 1", "    if a == b:", "        ties += 1"),
         "wins += at_most; ties += at_most - below"),
        # ---- which look like it ----
        (("if a > b:", "    log.append(b)"), None),
        (("if a > b:", "    wins += b"), None),
        (("if a > b:", "    wins += 1", "    break"), None),
        (("if a > 2 * b:", "    wins += 1"), None),
        (("if a > extra:", "    wins += 1"), None),
        (("if abs(a - b) < 2:", "    wins += 1"), None),
        (("if a != b:", "    wins += 1"), None),
        (("wins += 1",), None),
        (("if a > b:", "    wins -= 1"), None),
        (("if a > b > extra:", "    wins += 1"), None),
        (("if a > b:", "    wins = 1"), None),
    ],
)  # fmt: skip
def test_pairs(lines, adds):
    words = found(source_of(lines), lines[0]).get("pairs_compared")
    assert (words or {}).get("adds") == adds
    if adds is None:
        return
    assert words["items"] == "low"
    assert ("roc_auc_score" in words["auc"]) == (lines == AUC)
    # The code of the advice computes the same.
    code = source_of(lines).replace("    for a in", "    ordered = sorted(low)\n    for a in")
    start = code.index("        for b in")
    end = code.index("    return")
    advised = "        below, at_most = bisect_left(ordered, a), bisect_right(ordered, a)\n"
    code = code[:start] + advised + f"        {adds}\n" + code[end:]
    score, blocked = [5, 1, 3, 3, 2, 5, 4, 3, 9, 0], [1, 0, 1, 0, 0, 0, 1, 1, 0, 1]
    names = {"bisect_left": bisect_left, "bisect_right": bisect_right}
    results = []
    for text in (source_of(lines), code):
        space = dict(names)
        exec(text, space)
        results.append(space["quality"](score, blocked, 3))
    assert results[0] == results[1]
    assert results[0] != (0, 0)


@pytest.mark.parametrize(
    ("first", "second", "is_found"),
    [
        ("score", "extra", True),
        ("score[blocked > 0]", "score[blocked < 1]", True),
        ("score.tolist()", "extra.tolist()", True),
        ("score", "extra(a)", False),  # other values for each
        ("score", "a", False),
        ("score", "open(extra)", False),
        ("range(20)", "extra", False),
        ("score", "(1, 5, 9)", False),
    ],
)
def test_lists_of_pairs(first, second, is_found):
    text = source_of(AUC, first, second)
    for active in ("if a > b", f"for b in {second}", "wins += 0.5"):
        assert ("pairs_compared" in found(text, active)) == is_found


def test_another_statement_in_the_outer_loop_is_left_alone():
    text = source_of(AUC).replace("        for b in", "        log.append(a)\n        for b in")
    assert found(text, "if a > b") == {}


@pytest.mark.parametrize(
    ("value", "new"),
    [
        ("a > b for a in pos for b in neg", "bisect_left(ordered, a)"),
        ("1 for a in pos for b in neg if b >= a", "len(ordered) - bisect_left(ordered, a)"),
        ("0.5 for a in pos for b in neg if b == a",
         "0.5 * (bisect_right(ordered, a) - bisect_left(ordered, a))"),
        # ---- which look like it ----
        ("a * b for a in pos for b in neg", None),
        ("a > b for a in pos for b in near[a]", None),
        ("1 for a in pos if a for b in neg if b >= a", None),
        ("b for a in pos for b in neg if b >= a", None),
    ],
)  # fmt: skip
def test_sums_over_pairs(value, new):
    text = f"def rate(pos, neg, near):\n    return sum({value}) / len(pos)\n"
    active = value.split(" for ")[0]
    words = found(text, active).get("pairs_compared_in_sum")
    if new is None:
        assert words is None
        return
    assert (
        words["new"] == f"sum({new} for a in pos)"
        or words["new"] == f"sum({new[1:-1]} for a in pos)"
    )
    names = {"bisect_left": bisect_left, "bisect_right": bisect_right}
    pos, neg = [5, 1, 3, 3, 7], [2, 3, 3, 9, 1, 0]
    values = [
        eval(code, names | {"pos": pos, "neg": neg, "ordered": sorted(neg)})
        for code in (words["old"], words["new"])
    ]
    assert values[0] == values[1] > 0
