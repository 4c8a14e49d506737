"""Results that the program uses seldom, never, or only in part, found from a stack and the source.

Half of the programs are look-alikes of healthy programs: each iteration needs the result.
"""

from __future__ import annotations

import textwrap

import pytest

from source.stacks import stack_of
from teho.model.in_source import Need
from teho.source.unneeded import Needs

HELP = """
def advance(grid):
    grid[1:-1] = (grid[2:] + grid[:-2]) / 2
def order(grid):
    return np.abs(np.fft.rfft(grid)).mean()
def noisy(grid):
    print("computing")
    return np.abs(np.fft.rfft(grid)).mean()
STEPS, EVERY = 5000, 100
class Settings:
    every: int = 50
"""


def found(source, *stack):
    """Return the expression that is not needed each time; None if there is none."""
    frames, purity = stack_of(HELP + textwrap.dedent(source), *stack)
    every = Needs(purity).find(frames)
    assert len(every) < 2
    return every[0] if every else None


def loop(body, head="for step in range(1, STEPS + 1):", after="", before=""):
    """Return a program with a loop."""
    lines = textwrap.indent(textwrap.dedent(body).strip(), "        ")
    return (
        f"def main(grid, batches, settings, log, every=20):\n{textwrap.indent(before, '    ')}\n"
        f"    {head}\n        advance(grid)\n{lines}\n{textwrap.indent(after, '    ')}"
    )


EVALUATION = """
def accuracy(model, head, x, y):
    with torch.no_grad():
        hits = 0
        for start in range(0, len(x), 64):
            hits += int((head(model(x[start : start + 64])).argmax(1) == y).sum())
    return hits / len(x)
"""
SHOWN = "    print(step, value)"
SELDOM = {
    "each 100th step": ("value = order(grid)\nif step % 100 == 0:\n" + SHOWN, 0.01, True),
    "a constant of the file": ("value = order(grid)\nif step % EVERY == 0:\n" + SHOWN, 0.01, True),
    "the step after": ("value = order(grid)\nif (step + 1) % EVERY == 0:\n" + SHOWN, 0.01, True),
    "no remainder": ("value = order(grid)\nif not step % 50:\n" + SHOWN, 0.02, True),
    "one of two conditions": (
        "value = order(grid)\nif step % 100 == 0 or step == STEPS:\n" + SHOWN,
        0.0102,
        True,
    ),
    "two conditions at once": (
        "value = order(grid)\nif log and step % 100 == 0:\n" + SHOWN,
        0.01,
        True,
    ),
    "certain steps": ("value = order(grid)\nif step in {1, 10, 100}:\n" + SHOWN, 0.0006, True),
    "the last step": ("value = order(grid)\nif step == STEPS:\n" + SHOWN, 0.0002, True),
    "the default of an argument": (
        "value = order(grid)\nif step % every == 0:\n" + SHOWN,
        0.05,
        False,
    ),
    "the default of a setting": (
        "value = order(grid)\nif step % settings.every == 0:\n" + SHOWN,
        0.02,
        False,
    ),
    "two places": (
        "value = order(grid)\nif step % 100 == 0:\n" + SHOWN + "\nif step % 50 == 0:\n" + SHOWN,
        0.03,
        True,
    ),
    "a result made of it": (
        "value = order(grid)\npart = value ** 2\nif step % 100 == 0:\n    print(part)",
        0.01,
        True,
    ),
    "a name of the condition": (
        "is_shown = step % 100 == 0\nvalue = order(grid)\nif is_shown:\n" + SHOWN,
        0.01,
        True,
    ),
    "the other steps go on": (
        "value = order(grid)\nif step % 100:\n    continue\nprint(step, value)",
        0.01,
        True,
    ),
}


@pytest.mark.parametrize(("body", "share", "is_sure"), SELDOM.values(), ids=[*SELDOM])
def test_a_result_that_is_used_in_few_iterations(body, share, is_sure):
    one = found(loop(body), "order(grid)")
    assert one is not None
    assert one.need is Need.SELDOM
    assert one.share == pytest.approx(share)
    assert one.is_sure is is_sure
    assert one.loop.text == "for step in range(1, STEPS + 1)"
    assert one.is_skipped is ("continue" in body)


@pytest.mark.parametrize(
    ("head", "share"),
    [
        ("for step in range(7):", 3 / 7),  # 0, 3 and 6
        ("for step in range(1, 8):", 3 / 7),
        ("for step in range(9):", 1 / 3),
        ("for step in range(3000):", 1 / 3),
    ],
)
def test_in_a_short_loop_every_third_iteration_is_more_than_a_third(head, share):
    one = found(loop("value = order(grid)\nif step % 3 == 0:\n" + SHOWN, head=head), "order(grid)")
    assert one is not None
    assert one.share == pytest.approx(share)


LOOKALIKES = {
    "used in each step": "value = order(grid)\nif step % 100 == 0:\n    print(step)\nlog(value)",
    "used in the condition": "value = order(grid)\nif step % 100 == 0 and value > 3:\n    print(1)",
    "each step": "value = order(grid)\nif step % 1 == 0:\n" + SHOWN,
    "most steps": "value = order(grid)\nif step % 100 != 0:\n" + SHOWN,
    "the other steps": "value = order(grid)\nif step % 100 == 0:\n    pass\nelse:\n" + SHOWN,
    "kept for the next step": (
        "if step % 100 == 0:\n    print(value)\nvalue = order(grid)  # of the step before"
    ),
    "a sum of all steps": (
        "value = order(grid)\ntotal = total + value\nif step % 100 == 0:\n    print(total)"
    ),
    "a state": "value = value + order(grid)\nif step % 100 == 0:\n" + SHOWN,
    "added to a list": "value = order(grid)\nlog.append(value)\nif step % 100 == 0:\n    log(1)",
    "an effect": "value = noisy(grid)  # order(grid)\nif step % 100 == 0:\n" + SHOWN,
    "random numbers": ("value = np.random.rand(9)  # order(grid)\nif step % 100 == 0:\n" + SHOWN),
    "an unknown interval": "value = order(grid)\nif step % settings.rate == 0:\n" + SHOWN,
    "not a counter": "value = order(grid)\nif len(grid) % 100 == 0:\n" + SHOWN,
    "a counter that may stay": (
        "value = order(grid)\nif grid[0] > 3:\n    hits += 1\nif hits % 100 == 0:\n" + SHOWN
    ),
    "a flag": "value = order(grid)\nif log:\n" + SHOWN,
    "an inner loop": (
        "value = order(grid)\nfor part in range(900):\n    if part % 100 == 0:\n"
        "        print(part, value)"
    ),
    "a function that is defined here": (
        "value = order(grid)\nlog(lambda: value)\nif step % 100 == 0:\n" + SHOWN
    ),
    "a text that names it": (
        "value = order(grid)\nlog.query('level > @value')\nif step % 100 == 0:\n" + SHOWN
    ),
    "whether it fails": (
        "try:\n    value = order(grid)\nexcept ValueError:\n    break\nif step % 100 == 0:\n"
        + SHOWN
    ),
    "measured": (
        "begin = time.perf_counter()\nvalue = order(grid)\nlog(time.perf_counter() - begin)\n"
        "if step % 100 == 0:\n" + SHOWN
    ),
    "all variables": "value = order(grid)\nlog(locals())\nif step % 100 == 0:\n" + SHOWN,
    "an attribute": "log.value = order(grid)\nif step % 100 == 0:\n    print(log.value)",
}


@pytest.mark.parametrize("body", LOOKALIKES.values(), ids=[*LOOKALIKES])
def test_a_result_that_may_be_needed_in_each_iteration(body):
    text = next(one for one in ("np.random.rand(9)", "noisy(grid)", "order(grid)") if one in body)
    assert found(loop(body, before="total = hits = value = 0"), text) is None


def test_a_counter_of_the_calls_of_a_function():
    source = """
    class Model:
        def cost(self, grid):
            value = order(grid)
            self.calls += 1
            if self.calls % 10 == 0:
                print(value)
    """
    one = found(source, "order(grid)")
    assert (one.share, one.is_sure, one.can_move) == (0.1, True, True)
    assert one.loop.text == "def cost(self, grid)"
    source = """
    def training_step(batch, batch_idx):
        value = order(batch)
        if batch_idx % 10 == 0:
            print(value)
    """
    one = found(source, "order(batch)")
    assert (one.share, one.is_sure) == (0.1, False)


def test_a_range_in_which_the_condition_is_always_true():
    body = "value = order(grid)\nif step % 10 == 0:\n" + SHOWN
    assert found(loop(body, head="for step in range(0, STEPS, 10):"), "order(grid)") is None
    one = found(loop(body, head="for step in range(0, STEPS, 4):"), "order(grid)")
    assert one.share == pytest.approx(0.2)  # 0, 20, 40…


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("for step, batch in enumerate(batches):", "value = order(grid)\nif step % 100 == 0:\n"),
        ("for step in tqdm(range(STEPS)):", "value = order(grid)\nif step % 100 == 0:\n"),
        ("while True:", "step += 1\nvalue = order(grid)\nif step % 100 == 0:\n"),
    ],
)
def test_other_counters(head, body):
    assert found(loop(body + SHOWN, head=head), "order(grid)").share == pytest.approx(0.01)


MOVES = {
    "nothing between": ("value = order(grid)\nif step % 100 == 0:\n" + SHOWN, True),
    "another object changes": (
        "value = order(grid)\nother = np.zeros(3)\nadvance(other)\nif step % 100 == 0:\n" + SHOWN,
        True,
    ),
    "its input changes": (
        "value = order(grid)\nadvance(grid)\nif step % 100 == 0:\n" + SHOWN,
        False,
    ),
    "its input is another one": (
        "value = order(grid)\ngrid = grid + 1\nif step % 100 == 0:\n" + SHOWN,
        False,
    ),
    "an unknown function gets its input": (
        "value = order(grid)\nlog(grid)\nif step % 100 == 0:\n" + SHOWN,
        False,
    ),
}


@pytest.mark.parametrize(("body", "can_move"), MOVES.values(), ids=[*MOVES])
def test_whether_the_call_gives_the_same_result_in_the_branch(body, can_move):
    assert found(loop(body), "order(grid)").can_move is can_move


def test_a_condition_that_changes_between_the_two():
    body = "value = order(grid)\nstep += 1\nif step % 100 == 0:\n" + SHOWN
    assert found(loop(body, head="while True:"), "order(grid)").can_move
    body = body.replace("step += 1", "advance(grid)\nstep += 1")
    assert found(loop(body, head="while True:"), "order(grid)") is None


def test_what_is_moved_and_where():
    body = "value = order(grid)\npart = (\n    value ** 2\n)\nif step % 100 == 0:\n    print(part)"
    one = found(loop(body), "order(grid)")
    first, second = one.moved
    assert second == first + 1
    assert [(at.text, at.line) for at in one.at] == [("step % 100 == 0", first + 4)]


LAST = {
    "after the loop": ("value = order(grid)", "print(value)", True),
    "after a loop over batches": ("value = order(grid)\nprint(step)", "return value", True),
    "its input changes later": ("value = order(grid)\nadvance(grid)", "print(value)", False),
    "the loop may end before": (
        "if step > 9:\n    break\nvalue = order(grid)", "print(value)", False,
    ),
    "not in each iteration": ("if step > 9:\n    value = order(grid)", "print(value)", False),
    "the first one": ("value = order(grid)\nbreak", "print(value)", False),
    "all of them": ("value = order(grid)\nlog.append(value)", "print(value)", False),
}  # fmt: skip


@pytest.mark.parametrize(("body", "after", "is_found"), LAST.values(), ids=[*LAST])
def test_only_the_last_result_is_used(body, after, is_found):
    one = found(loop(body, after=after), "order(grid)")
    assert (one is not None) is is_found
    if one is not None:
        assert one.need is Need.LAST
        assert one.at[0].text == after


def test_the_last_result_is_used_too():
    body = "value = order(grid)\nif step % 100 == 0:\n" + SHOWN
    one = found(loop(body, after="print('end', value)"), "order(grid)")
    assert (one.need, one.can_move) == (Need.SELDOM, False)
    assert one.after[0].text == "print('end', value)"


LISTS = {
    "the last one": ("kept.append(order(grid))", "print(kept[-1])", Need.LAST),
    "with a name": ("value = order(grid)\nkept.append(value)", "print(kept[-1])", Need.LAST),
    "shown seldom": (
        "kept.append(order(grid))\nif step % 100 == 0:\n    print(kept[-1])", "", Need.SELDOM,
    ),
    "never": ("kept.append(order(grid))", "", Need.NEVER),
    # look-alikes
    "the first one": ("kept.append(order(grid))", "print(kept[0])", None),
    "all of them": ("kept.append(order(grid))", "print(sum(kept) / len(kept))", None),
    "the last and their number": ("kept.append(order(grid))", "print(kept[-1], len(kept))", None),
    "given away": ("kept.append(order(grid))", "log(kept)\nprint(kept[-1])", None),
    "another name for it": ("kept.append(order(grid))\nboth = kept", "print(kept[-1])", None),
    "compared with the last": (
        "kept.append(order(grid))\nbest = kept[-1] + 1\nlog(best)", "print(kept[-1])", None,
    ),
    "that of the step before": (
        "if step % 100 == 0:\n    print(kept[-1])\nkept.append(order(grid))", "", None,
    ),
    "taken out": ("kept.append(order(grid))", "print(kept.pop())", None),
    "its input changes later": (
        "kept.append(order(grid))\nadvance(grid)", "print(kept[-1])", None,
    ),
    "with another effect": ("kept.append(noisy(grid))", "print(kept[-1])", None),
}  # fmt: skip


@pytest.mark.parametrize(("body", "after", "need"), LISTS.values(), ids=[*LISTS])
def test_only_the_last_element_of_a_list_is_used(body, after, need):
    active = "noisy(grid)" if "noisy" in body else "order(grid)"
    one = found(loop(body, after=after, before="kept = []"), active)
    assert (one.need if one else None) is need


@pytest.mark.parametrize(
    ("before", "head"),
    [
        ("kept = [1]", "for step in range(1, STEPS + 1):"),
        ("kept = grid.kept", "for step in range(1, STEPS + 1):"),
        ("kept = []\nfor part in batches:\n    kept = []", "for step in range(1, STEPS + 1):"),
        ("def show():\n    print(kept)\nkept = []", "for step in range(1, STEPS + 1):"),
    ],
)
def test_lists_of_which_other_code_may_read_more(before, head):
    program = loop("kept.append(order(grid))", head=head, after="print(kept[-1])", before=before)
    assert found(program, "order(grid)") is None


NEVER = {
    "a name": ("value = order(grid)", "", True),
    "two names": ("value, other = order(grid), 3", "", True),
    "results made of it": ("value = order(grid)\nother = value + 1", "", True),
    "replaced": ("value = order(grid)\nvalue = 3\nlog(value)", "", True),
    "deleted": ("value = order(grid)\ndel value", "", False),
    "one of two names": ("value, other = order(grid), 3\nlog(other)", "", False),
    "no name": ("order(grid)", "", False),
    "not wanted": ("_ = order(grid)", "", False),
    "not replaced in each case": (
        "value = order(grid)\nif log:\n    value = 3\nprint(value)", "", False,
    ),
    "used after an error": (
        "try:\n    value = order(grid)\n    log(1)\nfinally:\n    print(value)", "", False,
    ),
    "measured elsewhere": ("value = order(grid)", "print(time.perf_counter())", False),
}  # fmt: skip


@pytest.mark.parametrize(("body", "after", "is_found"), NEVER.values(), ids=[*NEVER])
def test_a_result_that_is_never_used(body, after, is_found):
    one = found(loop(body, after=after), "order(grid)")
    assert (one is not None and one.need is Need.NEVER) is is_found


def test_a_test_and_a_file_may_compute_what_they_do_not_use():
    assert found("def test_order(grid):\n    value = order(grid)\n", "order(grid)") is None
    assert found("value = order(np.ones(9))\n", "order(np.ones(9))") is None


def test_the_outermost_call_is_reported():
    body = "value = order(grid)\nif step % 100 == 0:\n" + SHOWN
    one = found(loop(body), "order(grid)", "np.fft.rfft(grid)")
    assert [call.text for call in one.calls] == ["order(grid)"]


def test_the_time_in_which_a_device_computes_is_not_that_of_the_line_that_waits():
    body = "value = grid.mean().item()\nif step % 100 == 0:\n" + SHOWN
    assert found(loop(body), "grid.mean().item()") is None


RARER = {
    "a multiple": ("step % 7 == 0", "step % 28 == 0", 0.25),
    "names": ("step % EVERY == 0", "step % 500 == 0", 0.2),
    "no multiple": ("step % 7 == 0", "step % 30 == 0", None),
    "as often": ("step % 7 == 0", "step % 7 == 0", None),
    "more often": ("step % 28 == 0", "step % 7 == 0", None),
    "another counter": ("step % 7 == 0", "(step + 1) % 28 == 0", None),
    "another remainder": ("step % 7 == 1", "step % 28 == 1", None),
    "the last step": ("step % 7 == 0", "step == STEPS", None),
}


@pytest.mark.parametrize("name", RARER)
def test_a_rare_result_that_is_used_more_rarely(name):
    often, rare, share = RARER[name]
    body = f"if {often}:\n    value = order(grid)\nif {rare}:\n{SHOWN}"
    one = found(loop(body), "order(grid)")
    if share is None:
        assert one is None
        return
    assert one.need is Need.SELDOM
    assert one.share == pytest.approx(share)
    assert one.condition.text == often
    assert [at.text for at in one.at] == [rare]


@pytest.mark.parametrize(
    "body",
    [
        "if step % 7 == 0:\n    value = order(grid)\nif step % 28 == 0:\n    pass\nprint(value)",
        "if step % 7 == 0:\n    value = order(grid)\n    print(value)\nif step % 28 == 0:\n"
        + SHOWN,
        "if step % 7 == 0:\n    value = order(grid)\nelse:\n    value = 0\nif step % 28 == 0:\n"
        + SHOWN,
        "if step % 28 == 0:\n" + SHOWN + "\nif step % 7 == 0:\n    value = order(grid)",
        "if step % 7 == 0:\n    value = order(grid)\nif step % 28 == 0:\n    pass\nelse:\n" + SHOWN,
    ],
)
def test_a_rare_result_that_is_used_elsewhere_too(body):
    assert found(loop(body), "order(grid)") is None


@pytest.mark.parametrize(
    ("old", "new", "is_found"),
    [
        ("", "", True),
        ("    with torch.no_grad():", "    if True:", False),
        ("hits = 0", "hits = 0; print(x)", False),
        ("hits = 0", "model.eval()", True),
        ("hits = 0", "model.hits = 0", False),
        ("hits = 0", "COUNTS.append(1)", False),
        ("head(model(", "best(model(", False),  # a global model
        ("def accuracy", "@torch.no_grad()\ndef accuracy", True),
        ("def accuracy", "@torch.compile\ndef accuracy", False),
        ("hits = 0", "near = nn.functional.one_hot(x @ y.T).topk(5); hits = 0", True),
        ("hits = 0", "x = nn.functional.dropout(x); hits = 0", False),
        ("    return hits", "    model(x).backward()\n    return hits", False),
        ("    return hits", "    model.update(x)\n    return hits", False),
    ],
)
def test_an_evaluation_of_a_model_has_no_other_effect(old, new, is_found):
    body = f"value = accuracy(net, head, x, y)\nif step % 50 == 0:\n{SHOWN}"
    main = "def main(net, head, x, y):\n    for step in range(STEPS):\n        train(net)\n"
    source = EVALUATION.replace(old, new) if old else EVALUATION
    one = found(source + main + textwrap.indent(body, "        "), "accuracy(net, head, x, y)")
    assert (one is not None) is is_found
