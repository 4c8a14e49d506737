"""Whole collections that a program uses although a part would be enough, as findings."""

from __future__ import annotations

import msgspec
import pytest

from explain.program_parts import NODE, own, process, seen, watched
from explain.program_scenarios import WATCHED
from explain.scenario_parts import figures, found, judged
from teho.explain.rules.cpu import (
    known_activity,
    list_searched,
    saved_again,
    sorted_for_few,
)
from teho.model.finding import Certainty
from teho.model.in_source import WholeUse
from teho.model.stack import State

RULES = {
    "searches_a_list": list_searched,
    "sorts_for_few": sorted_for_few,
    "saves_all_again": saved_again,
}


def whole_of(name):
    (one,) = WATCHED[name]()[1].program.mains[0].process.wholes
    return one


SEARCH, SORT, SAVE = map(whole_of, RULES)


def run(whole, *others, wall_s=45.0, state=State.PYTHON):
    """Return a run of 100 s that was in an expression for some of the time."""
    main = process(
        seen((whole.call,), wall_s, state), *others, wholes=(whole,), progress=(), node=NODE
    )
    return watched(main)


def changed(whole, **fields):
    return msgspec.structs.replace(whole, **fields)


def beside(wall_s, state=State.PYTHON, line=32):
    return seen((own("row + 1", line, "options"),), wall_s, state)


def test_names_the_list_and_the_lines_to_change():
    finding = found(list_searched, run(SEARCH, beside(5.0)))
    assert finding.sentence == (
        "Searching the list `self.route` at train.py:33 took 45 % of the run time: `cell in "
        "self.route` compares the elements one after the other."
    )
    assert finding.action == (
        "In addition to the list, keep a set: `self.route_set = set(...)` wherever the list is "
        "made (train.py:20), `self.route_set.add(...)` wherever an element is added (train.py:48). "
        "In line 33, search in `self.route_set` instead of `self.route`."
    )
    assert finding.certainty is Certainty.LIKELY
    assert figures(finding)["list"] == "train.py:20  self.route = [cell]"


@pytest.mark.parametrize(
    ("other", "is_found"),
    [
        (beside(15.0), True),
        (beside(15.1), False),  # the list may be short
        (beside(30.0, State.NATIVE), True),  # longer calls are another work
        (beside(30.0, line=30), True),  # before the loop
    ],
)
def test_a_search_must_take_longer_than_the_rest_of_its_loop(other, is_found):
    assert bool(judged(list_searched, run(SEARCH, other))) is is_found


@pytest.mark.parametrize(
    ("as_often", "wall_s", "is_found"),
    [((32, 35), 15.0, True), ((32, 35), 15.1, False), ((), 15.0, False)],
)
def test_statements_that_are_executed_as_often(as_often, wall_s, is_found):
    """A queue counts too if it takes longer than these, even if an inner loop takes long."""
    one = changed(SEARCH, how="pop", use=WholeUse.SHIFTED, as_often=as_often)
    given = run(one, beside(wall_s), beside(30.0, line=34))
    assert bool(judged(list_searched, given)) is is_found


def test_a_list_that_is_kept_sorted_becomes_a_heap():
    one = changed(
        SEARCH, how="sort", use=WholeUse.SHIFTED, name="queue",
        shrinks=(own("node = queue.pop(0)", 34),),
        instead=("heapq.heappop(queue)", "heapq.heappush(queue, (d, n))"),
    )  # fmt: skip
    finding = found(list_searched, run(one))
    assert finding.sentence == (
        "Sorting the list `queue` at train.py:33 took 45 % of the run time: `queue.sort()` is only "
        "needed to find the smallest element, in each iteration."
    )
    assert finding.action == (
        "Keep the elements in a heap (`import heapq`): remove `queue.sort()`, write "
        "`heapq.heappop(queue)` instead of `queue.pop(0)` (train.py:34), and "
        "`heapq.heappush(queue, (d, n))` instead of `append` (train.py:48). If the list has "
        "several elements before the loop at line 31, first write `heapq.heapify(queue)`. The "
        "order of the elements stays the same."
    )


def test_a_list_that_is_only_searched_becomes_a_set():
    one = changed(SEARCH, is_only_searched=True, name="done")
    assert found(list_searched, run(one)).action == (
        "Make `done` a set, with `set(...)` around its value (train.py:20), and `done.add(...)` "
        "instead of `append` (train.py:48). The program does nothing else with this list."
    )


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"how": "index", "grows": ()}, "use `places[cell]` instead of `self.route.index(cell)`"),
        ({"how": "count", "grows": ()}, "use `counts[cell]` instead of `self.route.count(cell)`"),
        ({"how": "count"}, "In addition to the list, keep the counts"),
        ({"how": "index"}, "`del self.route[cell]`"),
        ({"how": "remove"}, "`del self.route[cell]`"),
        ({"how": "pop", "use": WholeUse.SHIFTED}, "`self.route.popleft()` instead of"),
        ({"how": "insert", "use": WholeUse.SHIFTED}, "`self.route.appendleft(cell)` instead of"),
        ({"how": "del", "use": WholeUse.SHIFTED}, "`self.route.popleft()` instead of"),
        ({"shrinks": (own("self.route.pop()", 50),)}, "`self.route_set.discard(...)` wherever"),
        ({"made": ()}, "(where it gets its value)"),
    ],
)
def test_each_kind_of_search_has_its_advice(fields, words):
    assert words in found(list_searched, run(changed(SEARCH, **fields))).action


def test_names_the_elements_that_are_used():
    finding = found(sorted_for_few, run(SORT))
    assert finding.sentence == (
        "Sorting `range(N)` at train.py:43 took 45 % of the run time, but the program uses only "
        "200 elements of 20,000."
    )
    assert finding.action == (
        "In line 43, use `heapq.nsmallest(200, range(N), key=score.get)` instead of "
        "`sorted(range(N), key=score.get)[:200]`. Import `heapq`."
    )


@pytest.mark.parametrize(
    ("count", "state", "is_found"),
    [
        (100, State.NATIVE, True),
        (101, State.NATIVE, False),  # of about 1,000 elements, these are not few
        (5, State.PYTHON, False),  # short calls sort only a few elements
    ],
)
def test_without_a_size_the_calls_must_be_long(count, state, is_found):
    one = changed(SORT, size=None, count=count)
    assert bool(judged(sorted_for_few, run(one, state=state))) is is_found


def test_several_lines_replace_a_sort():
    lines = ("top = np.argpartition(x, 4)[:5]", "top = top[np.argsort(x[top])]")
    one = changed(SORT, instead=lines, target="")
    assert found(sorted_for_few, run(one)).action == (
        f"Before line 43, write `{lines[0]}` and then `{lines[1]}`, and use `top` instead of "
        "`sorted(range(N), key=score.get)[:200]`. The result has the same order."
    )
    one = changed(one, target="top")
    assert found(sorted_for_few, run(one)).action == (
        f"Instead of line 43, write `{lines[0]}` and then `{lines[1]}`. The result has the same "
        "order."
    )


def test_names_what_is_written_again():
    finding = found(saved_again, run(SAVE))
    assert finding.sentence == (
        "Writing `chain` at train.py:61 took 45 % of the run time: all rows are written each time, "
        "not only the new rows (train.py:58)."
    )
    assert finding.action == (
        'Open the file with the mode `"a"` (`"ab"` for bytes), and write only the new rows: '
        'replace line 61 by `out.writelines(json.dumps(row) + "\\n" for row in chain[saved:])`. '
        "Set `saved = 0` before line 46, and `saved = len(chain)` after writing. To read the "
        "rows: `[json.loads(line) for line in open(path)]`. Or write `chain` only once, after the "
        "loop (after line 61 of train.py)."
    )


TO_CSV = '.to_csv(path, mode="a", header=saved == 0)'


def test_what_is_written_once_may_be_needed():
    assert judged(saved_again, run(changed(SAVE, periods=2))) == []


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"how": "to_csv"}, f"`pd.DataFrame(chain[saved:]){TO_CSV}`"),
        (
            {"how": "to_csv", "grows": (own("chain = pd.concat([chain, new])", 58),)},
            f"`chain.iloc[saved:]{TO_CSV}`",
        ),
        ({"how": "numpy.save"}, '`np.save(f"part_{saved:09d}.npy", chain[saved:])`'),
        (
            {"how": "numpy.save", "name": "self.chain"},
            '`np.save(f"part_{self.saved:09d}.npy", self.chain[self.saved:])`',
        ),
        ({"how": "pickle.dump"}, "`pickle.dump(chain[saved:], out)`"),
        ({"how": "write_text"}, "code that writes only `chain[saved:]`"),
        ({"key": "items"}, "write one line for each new item"),
        ({"calls": (own("json.dump(chain, out)", 9, "save"),)}, "Pass `saved` to `save`"),
    ],
)  # fmt: skip
def test_each_way_of_writing_has_its_advice(fields, words):
    assert words in found(saved_again, run(changed(SAVE, **fields))).action


@pytest.mark.parametrize("name", RULES)
def test_little_time_is_not_reported(name):
    one = whole_of(name)
    assert judged(RULES[name], run(one, wall_s=9.9)) == []
    assert len(judged(RULES[name], run(one, wall_s=10.1))) == 1


def test_the_general_activity_is_not_named_too():
    assert judged(known_activity, run(SEARCH)) == []
    assert judged(known_activity, run(changed(SEARCH, name="other"), beside(44.0))) != []
    assert saved_again.SAME_LOSS_AS == ("known_activity", "saving_often")
