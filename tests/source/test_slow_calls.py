"""Calls in loops for which there is a faster way, and programs that look like them."""

from __future__ import annotations

import re
import textwrap

import pytest

from source.stacks import stack_of
from teho.explain.options import in_words
from teho.source.options.table import costly_options
from teho.source.slow_calls.search import find_slow_calls

OPTIONS = {one.name: one for one in costly_options()}


def found(source, *active):
    """Return the names and the words of what is found on a stack."""
    words = {}
    for one in find_slow_calls(*stack_of(source, *active)):
        option = OPTIONS[one.name]
        assert option.is_slow_call
        assert "{" not in in_words(option.advice, [one.at], dict.fromkeys(one.words, "x"))
        words[one.name] = one.words
    return words


# ---- pages ----

PAGES = """
PAGE = 500
def pages(db):
    start = 0
    while True:
        rows = {call}
        if not rows: return
        start += {step}
        yield rows
"""
EXECUTE = 'db.execute("SELECT a, b FROM t ORDER BY a LIMIT ? OFFSET ?", (PAGE, start)).fetchall()'


@pytest.mark.parametrize(
    ("call", "step", "name"),
    [
        (EXECUTE, "len(rows)", "pages_by_offset"),
        (EXECUTE, "PAGE", "pages_by_offset"),
        (EXECUTE.replace("PAGE", "500"), "PAGE", "pages_by_offset"),
        (EXECUTE.replace("?", "%s"), "PAGE", "pages_by_offset"),
        (EXECUTE.replace("ORDER BY a ", ""), "PAGE", "pages_without_order"),
        (EXECUTE.replace("BY a", "BY a, b"), "PAGE", "pages_without_order"),
        ('cur.execute(f"SELECT a FROM t LIMIT {PAGE} OFFSET {start}")', "PAGE",
         "pages_without_order"),
        ('cur.execute("SELECT a FROM t LIMIT %d OFFSET %d" % (PAGE, start))', "PAGE",
         "pages_without_order"),
        ('cur.execute("SELECT a FROM t LIMIT ?, ?", [start, PAGE])', "PAGE", "pages_without_order"),
        ('q.execute("SELECT a FROM t ORDER BY a DESC LIMIT :n OFFSET :at", dict(n=PAGE, at=start))',
         "PAGE", "pages_by_offset"),
        ('cur.execute("SELECT a FROM t ORDER BY a OFFSET ? ROWS FETCH NEXT 500 ROWS ONLY", start)',
         "PAGE", "pages_by_offset"),
        ('con.fetch("SELECT a FROM t ORDER BY a LIMIT $1 OFFSET $2", PAGE, start)', "PAGE",
         "pages_by_key"),
        ('pd.read_sql(f"SELECT * FROM t LIMIT {PAGE} OFFSET {start}", db)', "PAGE",
         "pages_of_pandas"),
        # ---- which look like it ----
        ('con.fetch("SELECT a FROM t LIMIT $1 OFFSET $2", PAGE, start)', "PAGE", None),
        (EXECUTE.replace(" OFFSET ?", "").replace(", start", ","), "PAGE", None),
        (EXECUTE.replace("OFFSET ?", "OFFSET 20").replace(", start", ","), "PAGE", None),
        (EXECUTE.replace("start)", "asked.get())"), "PAGE", None),
        (EXECUTE, "7 * PAGE", None),  # only some rows
        ('db.execute("SELECT a FROM t ORDER BY a LIMIT 1 OFFSET ?", (start,))', "1", None),
        ('db.execute("SELECT a FROM t WHERE b > ? ORDER BY b LIMIT ?", (start, PAGE))', "PAGE",
         None),
        ('db.execute("SELECT a FROM t WHERE b IN (SELECT b FROM u LIMIT ? OFFSET ?)", [9, start])',
         "PAGE", None),
        ("db.execute(text, (PAGE, start))", "PAGE", None),
    ],
)  # fmt: skip
def test_pages(call, step, name):
    source = PAGES.format(call=call, step=step)
    assert list(found(source, call)) == ([name] if name else [])


def test_the_words_of_pages():
    call = EXECUTE.replace(".fetchall()", "").replace("BY a", "BY t.a DESC")
    words = found(PAGES.format(call=call, step="PAGE"), call)["pages_by_offset"]
    assert words == {"size": "PAGE", "query": "db.execute", "key": "t.a", "sign": "<"}


@pytest.mark.parametrize(
    ("loop", "argument", "is_found"),
    [
        ("for start in range(0, total, PAGE):", "start", True),
        ("for page in range(pages):", "page * PAGE", True),
        ("for page in itertools.count(1):", "(page - 1) * PAGE", True),
        ("for page, _ in enumerate(files):", "PAGE * page", True),
        ("for start in range(0, total, 10 * PAGE):", "start", False),
        ("for page in range(4):", "page * PAGE", False),  # few pages
        ("for start in asked:", "start", False),
        ("for page in [request.page]:", "page * PAGE", False),
        ("if start:", "start", False),  # once
    ],
)
def test_an_offset_that_a_caller_gives(loop, argument, is_found):
    source = f"""
    PAGE = 500
    def rows_at(db, offset):
        cur = db.cursor()
        cur.execute("SELECT a FROM t LIMIT 500 OFFSET ?", (offset,))
        return cur.fetchall()
    def main(db, total, pages, start):
        {loop}
            print(rows_at(db, {argument}))
    """
    call = 'cur.execute("SELECT a FROM t LIMIT 500 OFFSET ?", (offset,))'
    for active in (call, "cur.fetchall()"):
        names = list(found(source, f"rows_at(db, {argument})", active))
        assert names == (["pages_without_order"] if is_found else [])


# ---- integrals ----

INTEGRALS = """
from scipy.integrate import quad
OMEGA = 0.3
def inverse(z): return 1.0 / np.sqrt(OMEGA * (1 + z) ** 3 + 0.7)
def noisy(z): return z + random.random()
{define}
def distances(redshifts, tables, k):
    out = []
    {loop}
        {before}
        {value}
"""
QUAD = "quad(inverse, 0.0, z)"


def integrals(call=QUAD, loop="for z in redshifts:", before="pass", value="", define=""):
    source = INTEGRALS.format(
        define=textwrap.dedent(define),
        loop=loop,
        before=before,
        value=value or f"out.append({call}[0])",
    )
    return found(source, call, "lib:scipy/integrate/_quadpack_py.py:quad")


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "integrals_to_limits"),
        ({"loop": "for i, z in enumerate(redshifts):"}, "integrals_to_limits"),
        ({"loop": "for z in np.linspace(0, 1, 1000):"}, "integrals_to_any_limits"),
        ({"loop": "for i in range(9000):", "call": "quad(inverse, 0, redshifts[i])"},
         "integrals_to_limits"),
        ({"loop": "for one in tables:", "call": "quad(inverse, 0, one.z)"},
         "integrals_to_any_limits"),
        ({"call": "quad(lambda x: 1 / np.sqrt(OMEGA + x), 0.0, z, epsabs=1e-9)"},
         "integrals_to_limits"),
        ({"call": "quad(inverse, 0.0, z, args=(k, 2))"}, "integrals_to_limits"),
        ({"value": f"value, _ = {QUAD}"}, "integrals_to_limits"),
        # ---- which look like it ----
        ({"loop": "if True:", "before": "z = 2.0"}, None),  # only one integral
        ({"loop": "for z in (0.1, 0.2, 0.3):"}, None),  # only three
        ({"call": "quad(inverse, 0.0, 1.0, args=(z,))"}, None),  # another function each time
        ({"call": "quad(inverse, z, z + 1)"}, None),
        ({"call": "quad(inverse, z, np.inf)"}, None),
        ({"call": "quad(inverse, -np.inf, z)"}, None),
        ({"call": "quad(lambda x: x * z, 0.0, z)"}, None),
        ({"call": "quad(lambda x: noisy(x), 0.0, z)"}, None),
        ({"call": "quad(noisy, 0.0, z)"}, None),
        ({"call": "quad(inverse, 0.0, 3.0)"}, None),  # the rule work_repeated finds this
        ({"call": "quad(tables[z], 0.0, z)"}, None),
        ({"call": "quad(f, 0.0, z)", "before": "f = make(z)"}, None),
        ({"value": f"out.append({QUAD})"}, None),  # perhaps the error is used, too
        ({"value": f"value, error = {QUAD}; out.append(error)"}, None),
        ({"call": "quad(f, 0.0, z)", "before": "def f(x): return x * z"}, None),
        ({"before": "begin = time.perf_counter()", "value": f"v = {QUAD}[0]\n"
          "        print(time.perf_counter() - begin)"}, None),
    ],
)  # fmt: skip
def test_integrals(changes, name):
    assert list(integrals(**changes)) == ([name] if name else [])


def test_the_words_of_integrals():
    words = integrals("quad(lambda x, k: x * k, 0.0, z, args=(OMEGA,))")["integrals_to_limits"]
    assert words == {
        "begin": "0.0",
        "old": "quad(lambda x, k: x * k, 0.0, z, args=(OMEGA,))[0]",
        "new": "np.interp(z, grid, table)",
        "value": "(lambda x, k: x * k)(x, *(OMEGA,))",
        "loop": "train.py:16",
        "limits": "redshifts",
    }


def test_the_code_for_integrals():
    words = integrals(value=f"far, _ = {QUAD}")["integrals_to_limits"]
    assert (words["old"], words["new"]) == (
        f"far, _ = {QUAD}",
        "far = np.interp(z, grid, table)",
    )


COSMOLOGY = """
from scipy.integrate import quad
class Cosmology:
    def __init__(self, omega): self.omega = omega
    def inverse(self, z): return 1.0 / np.sqrt(self.omega * (1 + z) ** 3 + 0.7)
    def distance(self, z): return quad(self.inverse, 0.0, z)[0]
def main(redshifts, model):
    far = {loop}
    {more}
"""


@pytest.mark.parametrize(
    ("loop", "more", "is_found"),
    [
        ("[model.distance(z) for z in redshifts]", "", True),
        ("[model.distance(z) for z in (0.1, 0.2)]", "", False),
        ("[Cosmology(om).distance(2.0) for om in redshifts]", "", False),
        ("[model.distance(z) for z in redshifts]", "model.omega = 0.3", False),
    ],
)
def test_integrals_of_a_method(loop, more, is_found):
    source = COSMOLOGY.format(loop=loop, more=more)
    call = loop[1:].partition(" for ")[0]
    names = list(found(source, call, "quad(self.inverse, 0.0, z)"))
    assert names == (["integrals_to_any_limits"] if is_found else [])


def test_integrals_of_each_item():
    stack = "np.vectorize(distance)(redshifts)", "lib:numpy/lib/_function_base_impl.py:call"
    source = """
    from scipy.integrate import quad
    def inverse(z): return 1 / (1 + z)
    def distance(z): return quad(inverse, 0.0, z)[0]
    def main(redshifts): return np.vectorize(distance)(redshifts)
    """
    assert list(found(source, *stack, "quad(inverse, 0.0, z)")) == ["integrals_to_any_limits"]
    assert found(source, "quad(inverse, 0.0, z)") == {}  # the caller is not known


# ---- boosting ----

BOOSTING = """
import lightgbm as lgb
import xgboost as xgb
PARAMS = {{"eta": 0.1}}
def main(x, y, valid, chunks):
    data = xgb.DMatrix(x, label=y)
    booster, best, models = {begin}, None, []
    for number in range(100):
        {before}
        booster = {call}
        {after}
    return booster
"""
TRAIN = "xgb.train(PARAMS, data, num_boost_round=1, xgb_model=booster)"
LIGHT = "lgb.train(PARAMS, data, 1, init_model=booster)"


def boosting(call=TRAIN, begin="None", before="pass", after="pass", active=None):
    source = BOOSTING.format(call=call, begin=begin, before=before, after=after)
    return found(source, active or call)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "rounds_of_xgboost"),
        ({"call": LIGHT}, "rounds_of_lightgbm"),
        ({"call": "xgb.train(PARAMS, data, 1, xgb_model=booster, verbose_eval=False)"},
         "rounds_of_xgboost"),
        ({"before": "data = xgb.DMatrix(x, label=y)"}, "rounds_of_xgboost_and_data"),
        ({"call": LIGHT, "before": "data = lgb.Dataset(x, y)"}, "rounds_of_lightgbm_and_data"),
        ({"after": "print(booster.predict(valid).mean(), score(booster, valid))"},
         "rounds_of_xgboost"),
        ({"after": "booster.save_model(f'{number}.json')"}, "rounds_of_xgboost"),
        # ---- which look like it ----
        ({"call": "xgb.train(PARAMS, data, num_boost_round=50, xgb_model=booster)"}, None),
        ({"call": "xgb.train(PARAMS, data, xgb_model=booster)"}, None),
        ({"call": "xgb.train(PARAMS, data, 1)"}, None),
        ({"call": "xgb.train(PARAMS, data, 1, xgb_model=best)"}, None),
        ({"before": "data = xgb.DMatrix(*chunks[number])"}, None),  # other data in each round
        ({"before": "data = xgb.DMatrix(x, label=y - number)"}, None),
        ({"before": "x[number] = 0; data = xgb.DMatrix(x, label=y)"}, None),
        ({"before": "PARAMS['eta'] = 1 / (number + 1)"}, None),
        ({"call": TRAIN.replace("PARAMS", "{'eta': 1 / (1 + number)}")}, None),
        ({"call": TRAIN.replace("PARAMS", "settings(number)")}, None),
        ({"after": "models.append(booster)"}, None),  # the models of all rounds
        ({"after": "best = booster"}, None),
        ({"begin": "xgb.Booster(model_file='old.json')"}, None),
        ({"call": TRAIN.replace("data,", "data, obj=loss,")}, None),
    ],
)  # fmt: skip
def test_boosting(changes, name):
    assert list(boosting(**changes)) == ([name] if name else [])


def test_the_code_for_boosting():
    words = boosting()["rounds_of_xgboost"]
    assert words["before"] == "booster = xgb.Booster(PARAMS, [data])"
    assert words["update"] == "booster.update(data, booster.num_boosted_rounds())"
    made = "data = xgb.DMatrix(x, label=y + 0)"
    words = boosting(before=made, active="xgb.DMatrix(x, label=y + 0)")
    assert words["rounds_of_xgboost_and_data"]["before"] == (
        f"{made}; booster = xgb.Booster(PARAMS, [data])"
    )
    assert boosting(LIGHT)["rounds_of_lightgbm"]["update"] == "booster.update()"


EVALUATED = TRAIN.replace("data,", "data, evals=[(valid, 'v')], evals_result=seen,")
LIGHT_EVALUATED = "lgb.train(PARAMS, data, 1, valid_sets=[valid], init_model=booster)"


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"call": EVALUATED, "before": "seen = {}"}, "rounds_with_evaluation"),
        ({"call": EVALUATED, "before": "seen = {}", "after": "models.append(seen['v']['e'][-1])"},
         "rounds_with_evaluation"),
        ({"call": LIGHT_EVALUATED}, "rounds_with_evaluation"),
        ({"call": TRAIN.replace("data,", "data, evals=[(valid, 'v')],")}, "rounds_with_evaluation"),
        # ---- which look like it ----
        ({"call": EVALUATED, "before": "seen = {}", "after": "booster.predict(data)"}, None),
        ({"call": EVALUATED, "before": "seen = {}", "after": "if seen['v']['e'][-1] < 1: break"},
         None),
        ({"call": EVALUATED, "before": "seen = {}; valid = chunks[number]"}, None),
        ({"call": EVALUATED, "before": "seen = chunks[number]"}, None),
        ({"call": EVALUATED.replace("evals_result=seen", "callbacks=[xgb.early_stopping(3)]")},
         None),
        ({"call": EVALUATED.replace("evals_result=seen", "obj=losses[number]")}, None),
    ],
)  # fmt: skip
def test_boosting_that_is_evaluated(changes, name):
    assert list(boosting(**changes)) == ([name] if name else [])


def test_the_code_for_boosting_that_is_evaluated():
    words = boosting(EVALUATED, before="seen = {}")["rounds_with_evaluation"]
    assert words["before"] == (
        "seen = {}; booster = xgb.train(PARAMS, data, num_boost_round=100, "
        "evals=[(valid, 'v')], evals_result=seen)"
    )
    assert words["removed"] == "`seen = {}` and the call of `xgb.train`"
    assert "with `[number]` instead of `[-1]`" in words["results"]


GROWING = """
import xgboost as xgb
def main(x, test, chunks):
    data = xgb.DMatrix(x)
    booster = xgb.Booster({{}}, [data])
    for number in range(100):
        {update}
        {before}
        guess = {call}
"""
PREDICT = "booster.predict(xgb.DMatrix(test))"


@pytest.mark.parametrize("active", ["xgb.DMatrix(test)", PREDICT])
def test_all_trees_that_predict_again_after_each_tree(active):
    source = GROWING.format(update="booster.update(data, number)", before="pass", call=PREDICT)
    assert found(source, active) == {
        "predicted_with_all_trees": {
            "file": "train.py",
            "loop": "13",
            "before": "held_out = xgb.DMatrix(test)",
            "new": "booster.predict(held_out)",
        }
    }


@pytest.mark.parametrize(
    ("update", "before", "call"),
    [
        ("pass", "pass", PREDICT),  # the trees stay the same
        ("booster = xgb.train({}, data, 1, xgb_model=booster)", "pass", PREDICT),
        ("booster.update(data, number)", "test = chunks[number]", PREDICT),
        ("booster.update(data, number)", "test[number] = 0", PREDICT),
        ("booster.update(data, number)", "pass", "booster.predict(xgb.DMatrix(chunks[number]))"),
        ("booster.update(data, number)", "pass", "booster.predict(data)"),
        ("other.update(data, number)", "pass", PREDICT),
    ],
)
def test_other_predictions(update, before, call):
    source = GROWING.format(update=update, before=before, call=call)
    assert "predicted_with_all_trees" not in found(source, call)


# ---- images ----

IMAGES = """
from PIL import Image
SIDE = 96
def small(path):
    {body}
def main(folder): return [small(path) for path in folder.glob("*.{end}")]
"""


@pytest.mark.parametrize(
    ("body", "active", "name"),
    [
        ("with Image.open(path) as image:\n        return image.convert('L').resize((SIDE, SIDE))",
         "image.convert('L')", "large_images_decoded"),
        ("image = Image.open(path)\n    return image.resize((64, 48), Image.LANCZOS)",
         "image.resize((64, 48), Image.LANCZOS)", "large_images_decoded"),
        (("image = Image.open(path)\n    image = image.convert('RGB')\n"
         "    image = image.resize((64, 64))\n    return np.asarray(image), image.size"),
         "image.convert('RGB')", "large_images_decoded"),
        ("image = Image.open(path).convert('RGB')\n    image.thumbnail((96, 96))\n    return image",
         "Image.open(path).convert('RGB')", "large_images_decoded_at_once"),
        ("return Image.open(path).convert('RGB').resize((32, 32))",
         "Image.open(path).convert('RGB')", "large_images_decoded_at_once"),
        # ---- which look like it ----
        ("image = Image.open(path)\n    image.thumbnail((96, 96))\n    return image",
         "image.thumbnail((96, 96))", None),  # it asks for a small image itself
        (("image = Image.open(path)\n    image.draft('RGB', (192, 192))\n"
         "    return image.resize((96, 96))"), "image.resize((96, 96))", None),
        ("return Image.open(path).convert('RGB').resize((512, 512))",
         "Image.open(path).convert('RGB')", None),
        ("return Image.open(path).convert('RGB').resize((224, 224))",
         "Image.open(path).convert('RGB')", None),  # many photographs are hardly larger
        ("return Image.open(path).convert('RGB').resize(size)",
         "Image.open(path).convert('RGB')", None),
        ("image = Image.open(path)\n    w, h = image.size\n    return image.resize((96, 96)), w",
         "image.resize((96, 96))", None),
        ("image = Image.open(path)\n    return image.resize((96, 96)), np.asarray(image)",
         "image.resize((96, 96))", None),
        ("image = Image.open(path).crop((0, 0, 300, 300))\n    return image.resize((96, 96))",
         "image.resize((96, 96))", None),
        ("image = Image.fromarray(path)\n    return image.resize((96, 96))",
         "image.resize((96, 96))", None),
        ("image = np.load(path)\n    return image.resize((96, 96))", "image.resize((96, 96))",
         None),
    ],
)  # fmt: skip
def test_images(body, active, name):
    source = IMAGES.format(body=body, end="jpg")
    assert list(found(source, active)) == ([name] if name else [])
    assert found(IMAGES.format(body=body, end="png"), active) == {}  # `draft` is for JPEG


def test_the_words_of_images():
    body = "image = Image.open(path)\n    return image.convert('L').resize((SIDE, 64))"
    words = found(IMAGES.format(body=body, end="JPEG"), "image.convert('L')")
    assert words["large_images_decoded"] == {
        "opened": "Image.open(path)",
        "image": "image",
        "mode": "L",
        "least": "(192, 128)",
        "large": "384 × 256",
    }


SIZED = """
from PIL import Image
def small(path, size=(96, 64)):
    with Image.open(path) as image:
        return image.convert("RGB").resize(size)
def main(folder):
    for path in folder.glob("*.jpg"):
        {call}
"""


@pytest.mark.parametrize(
    ("call", "default", "least"),
    [
        ("small(path)", None, "(192, 128)"),
        ("small(path, (80, 60))", None, "(160, 120)"),
        ("small(path, size=(80, 60))", None, "(160, 120)"),
        # ---- which look like it ----
        ("small(path, (800, 600))", None, None),
        ("small(path, chosen)", None, None),
        ("small(path, **options)", None, None),
        ("small(*both)", None, None),
        ("small(path)", "size=(800, 600)", None),
        ("small(path)", "size=None", None),
    ],
)
def test_a_size_that_is_a_parameter(call, default, least):
    source = SIZED.format(call=call).replace("size=(96, 64)", default or "size=(96, 64)")
    words = found(source, call, 'image.convert("RGB")').get("large_images_decoded", {})
    assert words.get("least") == least


# ---- points ----

POINTS = """
from scipy.interpolate import RegularGridInterpolator
class Station:
    def __init__(self, flow):
        self.flow = flow
def drift(places, flow, now, station):
    moved = np.empty_like(places)
    {loop}
        {line}
"""
CALL = "lib:scipy/interpolate/_rgi.py:RegularGridInterpolator.__call__"


@pytest.mark.parametrize(
    ("loop", "line", "point"),
    [
        ("for i, (y, x) in enumerate(places):", "moved[i] = flow([now, y, x])[0]", "[now, y, x]"),
        ("for i, (y, x) in enumerate(places):",
         "point = [now, y, x]; moved[i] = flow(point)[0]", "[now, y, x]"),
        ("for place in places:", "moved[0] += flow(place)", "place"),
        ("for i in range(len(places)):", "moved[i] = flow(places[i])", "places[i]"),
        ("for y in places:", "moved[0] = station.flow(np.array([now, y]))", "np.array([now, y])"),
        ("if now:", "moved = [float(flow(place)) for place in places]", "place"),
        # ---- which look like it ----
        ("for i in range(len(places)):", "y = y + flow(y); moved[i] = flow(y)", None),  # steps
        ("for i in range(9):", "moved[i] = flow(places[i])", None),
        ("for i in range(len(places)):", "now += flow([now, places[i]])", None),
        ("for flow in station.flows:", "moved += flow(places)", None),
        ("for turn in range(400):", "moved += flow(places)", None),  # all points at once
        ("for i in range(len(places)):", "moved[i] = flow(next(station.stream) + i)", None),
        ("while now < 3:", "now = flow(now)", None),
        ("for i, y in enumerate(places):", "flow = load(i); moved[i] = flow(y)", None),
        ("if now:", "moved = flow(places)", None),
    ],
)  # fmt: skip
def test_points_one_by_one(loop, line, point):
    source = POINTS.format(loop=loop, line=line)
    (call,) = re.findall(r"(?:station\.)?flow\((?:\[.*\]|[^()]*\([^()]*\)[^()]*|[^()]*)\)", line)[
        -1:
    ]
    words = found(source, call, CALL).get("points_one_by_one")
    assert (words or {}).get("point") == point


def test_points_of_another_function():
    source = POINTS.format(loop="for place in places:", line="moved[0] += flow(place)")
    assert found(source, "flow(place)") == {}
    assert found(source, "flow(place)", "lib:scipy/optimize/_root.py:root") == {}


# ---- masks ----

MASKS = """
from scipy import ndimage
def measure(labels, grey, count):
    found = []
    for k in {keys}:
        inside = labels == k
        if inside.sum() < 9: continue
        rows, columns = np.nonzero(inside)
        {line}
    return found
def main(picture):
    labels, count = {made}
    print(measure(labels, picture, count))
"""


@pytest.mark.parametrize(
    ("keys", "made", "line", "active", "name"),
    [
        ("range(1, count + 1)", "ndimage.label(picture)", "found.append(grey[inside].mean())",
         "labels == k", "labels_searched"),
        ("range(1, count + 1)", "ndimage.label(picture)", "found.append(grey[inside].mean())",
         "inside.sum()", "labels_searched"),
        ("range(1, count + 1)", "ndimage.label(picture)", "found.append(grey[inside].mean())",
         "np.nonzero(inside)", "labels_searched"),
        ("range(1, count + 1)", "ndimage.label(picture)", "found.append(grey[inside].mean())",
         "grey[inside].mean()", "labels_searched"),
        ("np.unique(labels)", "divide(picture)", "found.append(grey[inside])", "grey[inside]",
         "array_searched"),
        ("np.unique(labels)", "divide(picture)", "found.append((grey * (labels == k)).sum())",
         "(grey * (labels == k)).sum()", "array_searched"),
        # ---- which look like it ----
        ("range(9)", "ndimage.label(picture)", "found.append(grey[inside])", "labels == k", None),
        ("range(1, count + 1)", "ndimage.label(picture)", "found.append(fit(grey[inside]))",
         "fit(grey[inside])", None),  # the work itself
        ("range(1, count + 1)", "ndimage.label(picture)",
         "labels = np.roll(labels, k); found.append(1)", "labels == k", None),
        ("np.unique(labels)", "divide(picture)", "found.append(np.linalg.svd(grey))",
         "np.linalg.svd(grey)", None),
    ],
)  # fmt: skip
def test_whole_arrays_that_are_searched(keys, made, line, active, name):
    source = MASKS.format(keys=keys, made=made, line=line)
    words = found(source, "measure(labels, picture, count)", active)
    assert list(words) == ([name] if name else [])
    if name:
        assert words[name] == {"array": "labels", "key": "k", "loop": "train.py:12"}


def test_a_key_that_is_compared_with_single_values_is_no_mask():
    source = """
    def main(names, labels):
        for name in names:
            if labels == name:
                count(name)
    """
    assert found(source, "labels == name") == {}


def test_a_table_of_pandas_has_another_advice():
    source = MASKS.format(
        keys="np.unique(labels)", made="load()", line="found.append(grey[inside])"
    )
    library = "lib:pandas/core/arraylike.py:OpsMixin.__eq__"
    assert found(source, "measure(labels, picture, count)", "labels == k", library) == {}
