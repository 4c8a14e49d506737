"""Expressions that go through a whole collection, found from a stack and the source.

More than half of the programs are look-alikes: the collection is no list, or the whole is needed.
"""

from __future__ import annotations

import textwrap

import pytest

from source.stacks import stack_of
from teho.model.in_source import WholeUse
from teho.source.unneeded import Needs
from teho.source.wholes import find_whole

HEAD = """
import heapq, json, pickle
N, K = 20000, 20
"""


def found(source, *stack):
    """Return the expression that goes through a whole collection; None if there is none."""
    frames, purity = stack_of(HEAD + textwrap.dedent(source), *stack)
    return find_whole(frames, purity, Needs(purity).uses_of)


def texts(frames):
    return [frame.text for frame in frames]


# ---- lists ----

ANTS = """
class Ant:
    def __init__(self, cell):
        self.route = {made}
    def options(self):
        for cell in NEIGHBOURS:
            if cell {search} self.route:
                use(cell)
    def move(self, cell):
        {more}
        self.route.{add}(cell)
def main(ants):
    for ant in ants:
        ant.options()
"""


def of_ants(made="[cell]", search="not in", more="pass", add="append"):
    source = ANTS.format(made=made, search=search, more=more, add=add)
    return found(source, "ant.options()", f"cell {search} self.route")


def test_an_attribute_that_is_a_list():
    one = of_ants(more="self.route = [NEST]")
    assert one is not None
    assert (one.use, one.name, one.key, one.how) == (
        WholeUse.SEARCHED, "self.route", "cell", "in",
    )  # fmt: skip
    assert texts(one.made) == ["self.route = [cell]", "self.route = [NEST]"]
    assert texts(one.grows) == ["self.route.append(cell)"]
    assert one.loop.text == "for cell in NEIGHBOURS"
    assert one.is_only_searched


@pytest.mark.parametrize(
    "change",
    [
        {"made": "{cell}", "add": "add"},
        {"made": "cell"},  # an argument may be anything
        {"made": "np.array([cell])"},
        {"more": "self.route = set(self.route)"},
        {"more": "other.route = read()"},
        {"more": "self.route.append([cell, 1])"},  # a set cannot have lists
        {"made": "['a', 'b']", "add": "index"},  # always two elements
    ],
)
def test_attributes_that_may_be_no_long_list(change):
    assert of_ants(**change) is None


LISTS = {
    "a list that grows": (
        "done = []",
        "if name in done:\n    continue\ndone.append(name)",
        "name in done",
    ),
    "made of a set": ("done = list(names)", "if name in done:\n    use(name)", "name in done"),
    "place of an element": ("order = sorted(names)", "use(order.index(name))", "order.index(name)"),
    "counted": ("words = text.split()", "use(words.count(name))", "words.count(name)"),
    "removed": ("left = list(names)", "left.remove(name)", "left.remove(name)"),
    "first one removed": ("queue = [root]", "node = queue.pop(0)\nqueue += [name]", "queue.pop(0)"),
    "first one deleted": ("queue = [root]", "del queue[0]\nqueue.append(name)", "queue[0]"),
    "inserted": ("queue = [root]", "queue.insert(0, name)", "queue.insert(0, name)"),
    "of a function": ("done = make()", "if name in done:\n    use(name)", "name in done"),
}
NO_LISTS = {
    "a set": ("done = set()", "if name in done:\n    continue\ndone.add(name)", "name in done"),
    "an argument": ("", "if name in names:\n    use(name)", "name in names"),
    "a dictionary": ("done = {}", "if name in done:\n    use(name)", "name in done"),
    "a text": ("done = 'abc'", "if name in done:\n    use(name)", "name in done"),
    "a set later": (
        "done = []\ndone = set(done)",
        "if name in done:\n    use(name)",
        "name in done",
    ),
    "three constants": (
        "kinds = ['a', 'b', 'c']",
        "if name in kinds:\n    use(name)",
        "name in kinds",
    ),
    "new in each iteration": (
        "",
        "parts = name.split(',')\nif 'x' in parts:\n    use(name)",
        "'x' in parts",
    ),
    "arrays": (
        "done = []",
        "done.append(np.ones(3))\nif name in done:\n    use(1)",
        "name in done",
    ),
    "last one removed": ("queue = [root]", "node = queue.pop()", "queue.pop()"),
    "an array times a list": (
        "done = [0] + names",
        "done = names * [1]\nif name in done:\n    use(name)",
        "name in done",
    ),
    "columns": ("done = table.columns", "if name in done:\n    use(name)", "name in done"),
    "a deque": ("queue = deque([root])", "node = queue.pop(0)", "queue.pop(0)"),
    "texts of a column": (
        "done = table.name.str.split()",
        "if name in done:\n    use(name)",
        "name in done",
    ),
}


def loop(before, body, after="", head="for name in names:"):
    """Return a program with a loop."""
    return (
        "def make():\n    return [read(n) for n in range(N)]\n"
        f"def main(names, root, table, text, rows):\n{textwrap.indent(before, '    ')}\n"
        f"    {head}\n{textwrap.indent(body, '        ')}\n{textwrap.indent(after, '    ')}"
    )


@pytest.mark.parametrize("name", LISTS)
def test_lists_that_a_loop_searches(name):
    before, body, active = LISTS[name]
    one = found(loop(before, body), active)
    assert one is not None
    assert one.use is (
        WholeUse.SHIFTED if "first" in name or "inserted" in name else WholeUse.SEARCHED
    )


@pytest.mark.parametrize("name", NO_LISTS)
def test_searches_that_are_fast_or_not_in_lists(name):
    before, body, active = NO_LISTS[name]
    assert found(loop(before, body), active) is None


def test_a_list_is_followed_to_the_call():
    source = """
    def is_new(name, done):
        return name not in done
    def main(names):
        done = {}
        for name in names:
            if is_new(name, done):
                done.append(name)
    """
    stack = "is_new(name, done)", "name not in done"
    one = found(source.replace("{}", "[]"), *stack)
    assert one is not None
    assert texts(one.made) == ["done = []"]
    assert found(source, *stack) is None


def test_a_function_without_a_loop_searches_once():
    assert (
        found("def main(names):\n    done = list(names)\n    return 3 in done", "3 in done") is None
    )


def test_a_list_that_is_used_for_more():
    one = found(
        loop("done = list(names)", "if name in done:\n    use(name)", "return done"), "name in done"
    )
    assert one is not None
    assert not one.is_only_searched


# ---- sorts ----

CHOSEN = "np.take_along_axis(rows, result, axis=1)"
SORTS = {
    "sorted(rows)[:5]": ["heapq.nsmallest(5, rows)"],
    "sorted(rows, key=len, reverse=True)[:K]": ["heapq.nlargest(K, rows, key=len)"],
    "sorted(rows)[-3:]": ["heapq.nlargest(3, rows)[::-1]"],
    "sorted(rows)[::-1][:3]": ["heapq.nlargest(3, rows)"],
    "sorted(rows, key=cost)[0]": ["min(rows, key=cost)"],
    "sorted(rows, key=cost)[-1]": ["max(rows, key=cost)"],
    "np.argsort(rows)[:K]": [
        "result = np.argpartition(rows, K - 1)[:K]",
        "result = result[np.argsort(rows[result])]",
    ],
    "np.argsort(-rows)[:10]": [
        "result = np.argpartition(-rows, 9)[:10]",
        "result = result[np.argsort(-rows[result])]",
    ],
    "np.argsort(rows)[::-1][:10]": [
        "result = np.argpartition(rows, -10)[-10:]",
        "result = result[np.argsort(rows[result])[::-1]]",
    ],
    "np.argsort(rows, axis=1)[:, 1:6]": [
        "result = np.argpartition(rows, 5, axis=1)[:, :6]",
        f"result = np.take_along_axis(result, np.argsort({CHOSEN}, axis=1), axis=1)[:, 1:]",
    ],
    "np.sort(rows)[-5:]": ["np.sort(np.partition(rows, -5)[-5:])"],
    "np.argsort(rows)[0]": ["np.argmin(rows)"],
    "torch.sort(rows, descending=True)[1][:8]": ["torch.topk(rows, 8).indices"],
    "torch.sort(rows, dim=1).values[:, :8]": ["torch.topk(rows, 8, dim=1, largest=False).values"],
    "torch.argsort(rows)[:8]": ["torch.topk(rows, 8, largest=False).indices"],
    'rows.sort_values("t", ascending=False).head(9)': ['rows.nlargest(9, "t")'],
}
NEEDED_SORTS = (
    "sorted(rows)",
    "sorted(rows)[5:]",
    "sorted(rows)[:count]",  # the number may be large
    "sorted(rows)[: len(rows) // 2]",
    "sorted(rows)[1:-1]",
    "sorted(rows)[::2]",
    "sorted(rows)[:5000]",
    "sorted(range(100))[:50]",
    "sorted(rows, reverse=way)[:5]",
    "np.argsort(rows, kind='stable')[:5]",
    "np.argsort(rows, axis=0)[:5]",
    "np.argsort(rows)[len(rows) // 2]",
    "torch.sort(rows)[1][-5:]",
    "torch.sort(rows)[0]",
    "rows.sort_values(['t', 'u']).head(5)",
    "rows.sort_values('t').tail(5)",
    "sorted(rows)[3]",
)


@pytest.mark.parametrize("text", SORTS)
def test_sorts_of_which_few_elements_are_used(text):
    active = next(
        text[: place + 1]
        for place, sign in enumerate(text)
        if sign == ")" and text[: place + 1].count("(") == text[: place + 1].count(")")
    )
    one = found(f"def top(rows, cost):\n    result = {text}\n    return result", active)
    assert one is not None
    assert list(one.instead) == SORTS[text]
    assert one.key == text
    assert one.target == ("result" if len(one.instead) > 1 else "")


@pytest.mark.parametrize("text", NEEDED_SORTS)
def test_sorts_that_are_needed(text):
    active = text.partition("[")[0].partition(".head")[0].partition(".tail")[0]
    if active.count("(") != active.count(")"):
        active = text.rpartition(".")[0]
    assert found(f"def top(rows, count, way):\n    return {text}", active) is None


def test_all_uses_of_a_sorted_name_count():
    source = """
    def top(rows):
        order = np.argsort(rows)
        use(order[:5])
        {}
    """
    one = found(source.format("use(order[:8])"), "np.argsort(rows)")
    assert one is not None
    assert one.count == 8
    assert one.instead[0] == "order = np.argpartition(rows, 7)[:8]"
    assert found(source.format("return order"), "np.argsort(rows)") is None
    assert found(source.format("use(order[-5:])"), "np.argsort(rows)") is None
    assert found(source.format("use(len(order))"), "np.argsort(rows)") is None


def test_a_sort_by_the_values_of_an_array():
    source = """
    def top(model):
        score = model(x).{}()
        best = sorted(range(N), key=lambda i: score[i], reverse=True)[:K]
        return best
    """
    stack = "sorted(range(N), key=lambda i: score[i], reverse=True)", "lambda:score[i]"
    one = found(source.format("numpy"), *stack)
    assert one is not None
    assert (one.size, one.count) == (20000, 20)
    assert one.instead == (
        "best = np.argpartition(score, -K)[-K:]",
        "best = best[np.argsort(score[best])[::-1]].tolist()",
    )
    one = found(source.format("read"), *stack)
    assert one is not None
    assert one.instead == ("heapq.nlargest(K, range(N), key=lambda i: score[i])",)


# ---- saved results ----

GROWING = {
    "a list": ("chain = []", "chain.append(step)\njson.dump(chain, out)", "json.dump(chain, out)"),
    "with other values": (
        "chain = []",
        "chain.append(step)\njson.dump({'rows': chain, 'step': step}, out)",
        "json.dump({'rows': chain, 'step': step}, out)",
    ),
    "as a text": (
        "chain = []",
        "chain.append(step)\npath.write_text(json.dumps(chain))",
        "path.write_text(json.dumps(chain))",
    ),
    "a table": (
        "frame = pd.DataFrame()",
        "frame = pd.concat([frame, new(step)])\nframe.to_csv(path)",
        "frame.to_csv(path)",
    ),
    "an array": (
        "chain = []",
        "chain += [step]\nnp.save(path, np.array(chain))",
        "np.save(path, np.array(chain))",
    ),
    "rows as a table": (
        "kept = []",
        "kept.append(step)\nif step % 10 == 0:\n    pd.DataFrame(kept).to_csv(path)",
        "pd.DataFrame(kept).to_csv(path)",
    ),
    "a dictionary": (
        "scores = {}",
        "scores[step] = new(step)\njson.dump(scores, out)",
        "json.dump(scores, out)",
    ),
    "lines": (
        "lines = []",
        "lines.append(str(step))\nout.write('\\n'.join(lines))",
        "out.write('\\n'.join(lines))",
    ),
    "a history": (
        "history = []",
        "history.append(step)\ntorch.save(history, path)",
        "torch.save(history, path)",
    ),
}
NOT_GROWING = {
    "emptied": (
        "chain = []",
        "chain.append(step)\njson.dump(chain, out)\nchain.clear()",
        "json.dump(chain, out)",
    ),
    "a new list": (
        "chain = []",
        "chain.append(step)\njson.dump(chain, out)\nchain = []",
        "json.dump(chain, out)",
    ),
    "new in each iteration": (
        "",
        "chain = []\nchain.append(step)\njson.dump(chain, out)",
        "json.dump(chain, out)",
    ),
    "only the new rows": (
        "chain = []",
        "chain.append(step)\njson.dump(chain[-10:], out)",
        "json.dump(chain[-10:], out)",
    ),
    "a window": (
        "chain = []",
        "chain.append(step)\nchain.pop(0)\njson.dump(chain, out)",
        "json.dump(chain, out)",
    ),
    "deleted rows": (
        "chain = []",
        "chain.append(step)\ndel chain[:5]\njson.dump(chain, out)",
        "json.dump(chain, out)",
    ),
    "does not grow": (
        "chain = make()",
        "chain[3] = step\njson.dump(chain, out)",
        "json.dump(chain, out)",
    ),
    "one key": ("best = {}", "best['score'] = step\njson.dump(best, out)", "json.dump(best, out)"),
    "the weights": (
        "history = []",
        "history.append(step)\ntorch.save({'model': net.state_dict(), 'history': history}, path)",
        "torch.save({'model': net.state_dict(), 'history': history}, path)",
    ),
    "not written": (
        "chain = []",
        "chain.append(step)\nuse(json.dumps(chain))",
        "json.dumps(chain)",
    ),
    "added to the file": (
        "kept = []",
        "kept.append(step)\npd.DataFrame(kept).to_csv(path, mode='a')",
        "pd.DataFrame(kept).to_csv(path, mode='a')",
    ),
    "the last row": (
        "rows = []",
        "rows.append(step)\njson.dump(step, out)",
        "json.dump(step, out)",
    ),
}


@pytest.mark.parametrize("name", GROWING)
def test_growing_results_that_are_saved_again(name):
    before, body, active = GROWING[name]
    one = found(loop(before, body, head="for step in range(N):"), active)
    assert one is not None
    assert one.use is WholeUse.SAVED
    assert len(one.grows) == 1
    assert one.loop.text == "for step in range(N)"
    assert one.key == ("items" if name == "a dictionary" else "rows")


@pytest.mark.parametrize("name", NOT_GROWING)
def test_results_that_do_not_grow(name):
    before, body, active = NOT_GROWING[name]
    assert found(loop(before, body, head="for step in range(N):"), active) is None


def test_saving_once_after_the_loop():
    source = loop(
        "chain = []", "chain.append(step)", "json.dump(chain, out)", "for step in range(N):"
    )
    assert found(source, "json.dump(chain, out)") is None


TRAINER = """
class Trainer:
    def __init__(self):
        self.log = []
    def save(self):
        json.dump(self.log, out)
    def step(self, batch):
        self.log.append(batch){more}
def main(batches):
    trainer = Trainer()
    for batch in batches:
        {step}
        trainer.save()
"""


@pytest.mark.parametrize(
    ("step", "more", "is_found"),
    [
        ("trainer.step(batch)", "", True),
        ("use(batch)", "", False),
        ("trainer.step(batch)", "\n        self.log = self.log[-5:]", False),
        ("trainer.step(batch)", "\n        self.log.pop(0)", False),
        ("trainer = Trainer()", "", False),
    ],
)
def test_a_growing_attribute(step, more, is_found):
    source = TRAINER.format(step=step, more=more)
    one = found(source, "trainer.save()", "json.dump(self.log, out)")
    assert (one is not None) is is_found


def test_a_growing_argument():
    source = """
    def save(rows):
        pickle.dump(rows, out)
    def main():
        chain = []
        for step in range(N):
            chain.append(step)
            save(chain)
    """
    one = found(source, "save(chain)", "pickle.dump(rows, out)")
    assert one is not None
    assert (one.name, one.loop.text) == ("rows", "for step in range(N)")


# ---- queues ----

TRAVEL = """
def times(cost, start):
    best = {start: 0.0}
    done = set()
    frontier = [(0.0, start)]
    while frontier:
        frontier.sort()
        time, cell = frontier.pop(0)
        if cell in done:
            continue
        done.add(cell)
        for other in neighbours(cell):
            best[other] = time + cost[other]
            frontier.append((best[other], other))
    return best
def main(cost, start):
    times(cost, start)
"""
TRAVEL_STACK = ("times(cost, start)", "frontier.sort()")


@pytest.mark.parametrize("inner", ["frontier.sort()", "frontier.pop(0)"])
def test_a_list_that_is_kept_sorted(inner):
    one = found(TRAVEL, "times(cost, start)", inner)
    assert one is not None
    assert (one.use, one.name, one.how) == (WholeUse.SHIFTED, "frontier", "sort")
    assert one.instead == (
        "heapq.heappop(frontier)",
        "heapq.heappush(frontier, (best[other], other))",
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("frontier.sort()", "frontier.sort(key=cheapest)"),
        ("frontier.sort()", "frontier.sort(reverse=True)"),
        ("frontier.pop(0)", "frontier.pop()"),
        ("    return best", "    return best, frontier"),
        ("        done.add(cell)", "        done.add(frontier[0])"),
        ("        done.add(cell)", "        frontier.remove(cell)"),
        ("        done.add(cell)", "        frontier.extend(cell)"),
        ("    frontier = [(0.0, start)]", "    frontier = start"),
        ("            frontier.append((best[other], other))", "            pass"),
        ("def times(cost, start):", "def times(cost, start, frontier):"),
    ],
)
def test_lists_that_are_no_heap(old, new):
    one = found(TRAVEL.replace(old, new), TRAVEL_STACK[0], TRAVEL_STACK[1].replace(old, new))
    assert one is None or not one.instead


def test_the_statements_that_are_executed_as_often():
    one = found(TRAVEL, "times(cost, start)", "frontier.pop(0)")
    frame = one.call
    # The sort before, and the test of the `if` behind it, which may end the iteration.
    assert one.as_often == (frame.line - 1, frame.line + 1)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        frontier.sort()\n", ""),  # only one statement is left
        ("        if cell in done:\n            continue", "        if cell in done: continue"),
        (
            "        frontier.sort()",
            "        if not best: return\n        for i in x: frontier.sort()",
        ),
    ],
)
def test_too_few_statements_that_are_executed_as_often(old, new):
    assert old in TRAVEL
    one = found(TRAVEL.replace(old, new), "times(cost, start)", "frontier.pop(0)")
    assert one.as_often == ()
