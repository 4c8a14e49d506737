"""Options that make a part of a program's work expensive, found in the program's source."""

from __future__ import annotations

import re
import textwrap

import pytest

from teho.explain.gpu_lines import KIND
from teho.model.stack import Frame
from teho.source.options.files import OwnFiles
from teho.source.options.search import OptionSearch
from teho.source.options.table import Option, costly_options, ends
from teho.source.parsed import parsed

MAIN = "/home/ada/train.py"
PACKAGES = "/env/lib/python3.11/site-packages/"
INSTALLED = frozenset(
    (
        "numpy",
        "scipy",
        "sklearn",
        "torch",
        "datasets",
        "polars",
        "xgboost",
        "PIL",
        "matplotlib",
        "transformers",
        "pyarrow",
    )
)


def installed():
    return INSTALLED


def search(source, *stacks, **modules):
    """Return the options of a program: name of the option -> its places and lines.

    Args:
        source: the program.
        stacks: the frames of each stack, innermost frame first: the text of a line of the program,
            or the file of a library. One text is one line.
        modules: further files of the program, by their names.
    """
    texts = {MAIN: textwrap.dedent(source)}
    texts |= {f"/home/ada/{name}.py": textwrap.dedent(text) for name, text in modules.items()}
    file = parsed(texts[MAIN].encode())
    frames = [
        [_frame(file, text) for text in ([stack] if isinstance(stack, str) else stack)]
        for stack in stacks
    ]
    own = OwnFiles([MAIN], lambda path: texts[path].encode() if path in texts else None, installed)
    found = OptionSearch(own).found(frames, own.reached([MAIN]))
    return {
        name: [
            (one.at.short_place, one.at.text, [frame.line for frame in one.lines])
            for one in found
            if one.name == name
        ]
        for name in dict.fromkeys(one.name for one in found)
    }


def _frame(file, text):
    if text.endswith(".py"):
        return Frame(PACKAGES + text, "call", 0, "")
    lines = [line.decode() for line in file.lines]
    (number,) = [number for number, line in enumerate(lines, 1) if text in line]
    return Frame(MAIN, file.function_at(number).name, number, text)


SVM = """
from sklearn import svm
from sklearn.model_selection import GridSearchCV
SETTINGS = {"kernel": "rbf", "probability": True}
def model(c):
    return svm.SVC(C=c, **SETTINGS)
def main(x, y):
    return GridSearchCV(model(1), {"C": [1, 3]}, scoring="accuracy").fit(x, y)
"""


class TestSupportVectorMachines:
    def test_probabilities_that_the_program_never_asks_for(self):
        assert search(SVM) == {"svm_probability": [("train.py:4", "probability=True", [])]}

    @pytest.mark.parametrize(
        "further",
        [
            "print(model(1).fit(x, y).predict_proba(x))",
            'cross_val_predict(model(1), x, y, method="predict_proba")',
            'cross_val_score(model(1), x, y, scoring="neg_log_loss")',
            'VotingClassifier([("a", model(1))], voting="soft")',
            'joblib.dump(model(1).fit(x, y), "model.joblib")',
            "getattr(model(1), sys.argv[1])(x)",
            "from reports import calibration_curve_of",
            "svm.SVC().fit(x, y)",  # which of the two takes the time?
            "svm.SVR().fit(x, y)",
            "SETTINGS['probability'] = False",
            "import unknown_module",
            "from helpers import report",  # it asks for probabilities
        ],
    )
    def test_a_program_that_may_need_them(self, further):
        helpers = "def report(model, x):\n    return model.predict_proba(x)\n"
        assert search(f"{SVM}\n{further}\n", helpers=helpers) == {}

    @pytest.mark.parametrize(
        ("fold", "line"),
        [
            ("model = svm.SVC(C=1, probability=True)\n        model.fit(x, y)", "model.fit(x, y)"),
            ("svm.SVC(probability=True).fit(x, y)", "svm.SVC(probability=True).fit(x, y)"),
            (("model = make_pipeline(Scaler(), svm.SVC(probability=True))\n"
              "        print(cross_val_score(model, x, y))"),
             "print(cross_val_score(model, x, y))"),
            # ---- the time of another model, or of several models ----
            ("model = svm.SVC(probability=True)\n        model.score(x, y)", None),
            (("model = svm.SVC(probability=True)\n        model = svm.SVC()\n"
              "        model.fit(x, y)"), None),
            (("models = {}\n        models[1] = svm.SVC(probability=True)\n"
              "        models[1].fit(x, y)"), None),
            ("model = svm.SVC(probability=True)\n        print(model.fit(x, y).predict_proba(x))",
             None),
        ],
    )  # fmt: skip
    def test_only_one_of_several_models_has_the_option(self, fold, line):
        source = f"""
from sklearn import svm
def main(x, y):
    for _ in range(8):
        {fold}
    final = svm.SVC(C=3)
    final.fit(x, y + 1)
"""
        last = fold.split("\n")[-1].strip()
        found = search(source, last, "final.fit(x, y + 1)")
        lines = [one for _, _, one in found.get("svm_probability", [])]
        numbers = [n for n, text in enumerate(source.split("\n"), 1) if text.strip() == line]
        assert lines == ([numbers] if line else [])

    def test_words_of_comments_and_documentation_do_not_need_them(self):
        said = '"""Without predict_proba."""\n# no predict_proba\n'
        assert "svm_probability" in search(
            said + SVM + "from helpers import a\n", helpers="a = 1\n"
        )

    def test_a_module_in_another_folder_is_read(self):
        source = f"{SVM}\nfrom tools.shown import show\n"
        modules = {"tools/shown": "from . import more\n", "tools/more": "x = 1\n"}
        assert "svm_probability" in search(source, **modules)
        assert search(source, **modules | {"tools/more": "m.predict_proba\n"}) == {}

    def test_an_option_under_a_condition(self):
        source = SVM.replace("    return svm", "    if c > 1:\n        return svm")
        assert search(source) == {}


GP = """
import numpy as np
def choose(gp, points, best):
    mean, cov = gp.predict(points, return_cov=True)
    spread = np.sqrt(np.maximum(np.diag(cov), 1e-9)) + {other}
    return mean + spread
"""


@pytest.mark.parametrize(
    ("other", "is_found"),
    [
        ("cov.diagonal().max()", True),
        ("0", True),
        ("np.linalg.cholesky(cov)[0, 0]", False),
        ("cov[0, 1]", False),
        ("draw(mean, cov)", False),
        ("(lambda: cov)()", False),
    ],
)
def test_a_covariance_of_which_only_the_diagonal_is_used(other, is_found):
    source = GP.replace("{other}", other)
    on_stack = ("sklearn/gaussian_process/_gpr.py", "gp.predict(points, return_cov=True)")
    place = ("train.py:4", "return_cov=True", [4])
    assert search(source, on_stack) == ({"covariance_for_deviations": [place]} if is_found else {})
    assert search(source) == {}  # the call took no time


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("u, s, vt = np.linalg.svd(a)\n    return s[0]", "only_singular_values"),
        ("u, s, vt = svd(a, full_matrices=False)\n    return s[0]", "only_singular_values"),
        ("return np.linalg.svd(a)[1]", "only_singular_values"),
        ("found = np.linalg.svd(a)\n    return found[1].max()", "only_singular_values"),
        ("w, v = np.linalg.eigh(a)\n    return w[-3:]", "only_eigenvalues_symmetric"),
        ("w, v = np.linalg.eig(a)\n    return w", "only_eigenvalues"),
        ("u, s, vt = np.linalg.svd(a)\n    return u @ vt", None),
        ("u, s, vt = np.linalg.svd(a)\n    return [u for _ in s]", None),
        ("s = np.linalg.svd(a, compute_uv=False)\n    return s[0]", None),
        ("found = np.linalg.svd(a)\n    return found", None),
        ("return np.linalg.svd(a)", None),
        ("global u\n    u, s, vt = np.linalg.svd(a)\n    return s", None),
        ("u, s, vt = np.linalg.svd(a, **settings)\n    return s", None),
        ("w, v = np.linalg.eigh(a)\n    return v[:, -1]", None),
    ],
)
def test_parts_of_a_result_that_the_program_does_not_use(text, name):
    source = f"import numpy as np\nfrom scipy.linalg import svd\ndef main(a):\n    {text}\n"
    (call,) = re.findall(r"[\w.]*(?:svd|eigh?)\(a[^)]*\)", source)
    found = search(source, call)
    assert list(found) == ([name] if name else [])


class TestSettings:
    @pytest.mark.parametrize(
        "setting",
        [
            'os.environ["OMP_NUM_THREADS"] = "1"',
            'os.environ.setdefault("OMP_NUM_THREADS", "1")',
            'os.environ.update({"OMP_NUM_THREADS": "1"})',
            'os.environ.update(OMP_NUM_THREADS="1")',
            'os.putenv("OMP_NUM_THREADS", "1")',
        ],
    )
    def test_all_ways_to_set_a_variable(self, setting):
        (place,) = search(f"import os\n{setting}\n")["one_thread_for_all"]
        assert place == ("train.py:2", setting, [])

    @pytest.mark.parametrize(
        "text",
        [
            'os.environ["OMP_NUM_THREADS"] = str(cores)',
            'os.environ["OMP_NUM_THREADS"] = "4"',
            'env = dict(os.environ, OMP_NUM_THREADS="1")',  # of another program
            'if ranks > 1:\n    os.environ["OMP_NUM_THREADS"] = "1"',
            'os.environ["OMP_NUM_THREADS"] = "1"\nos.environ["MKL_NUM_THREADS"] = "8"',
        ],
    )
    def test_other_values(self, text):
        assert search(f"import os\n{text}\n") == {}

    def test_the_option_is_where_its_value_gets_its_name(self):
        setup = """
        import logging, sys
        import numpy
        LEVEL = logging.DEBUG
        def begin():
            numpy.set_printoptions(threshold=sys.maxsize)
            logging.basicConfig(filename="a.log", level=LEVEL)
        """
        assert search("import setup_logs\nsetup_logs.begin()\n", setup_logs=setup) == {
            "debug_messages": [("setup_logs.py:4", "LEVEL = logging.DEBUG", [])],
            "all_elements_printed": [("setup_logs.py:6", "threshold=sys.maxsize", [])],
        }

    def test_items_of_a_table_that_is_an_argument(self):
        source = """
        import xgboost as xgb
        def main(data):
            params = {"tree_method": "exact", "eta": 0.1}
            return xgb.train(params, data, num_boost_round=10)
        """
        place = ("train.py:4", 'tree_method="exact"', [])
        assert search(source) == {"boosting_exact": [place]}
        assert search(source.replace("return", "params['tree_method'] = 'hist'\n    return")) == {}

    def test_precision_of_a_trainer(self):
        source = "import lightning as L\nL.Trainer(max_epochs=2, precision='64-true')\n"
        place = ("train.py:2", "precision='64-true'", [])
        assert search(source) == {"double_by_trainer": [place]}
        assert search(source.replace("64-true", "bf16-mixed")) == {}


PNG = """
from PIL import Image
def cut(pixels, path):
    Image.fromarray(pixels).save(path, {option})
"""


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ("optimize=True", "png_optimized"),
        ("compress_level=9", "png_level"),
        ("optimize=False", None),
        ("compress_level=1", None),
        ("quality=90", None),
    ],
)
def test_the_time_is_only_that_of_the_line(option, name):
    stack = ("PIL/PngImagePlugin.py", f"Image.fromarray(pixels).save(path, {option})")
    found = search(PNG.replace("{option}", option), stack)
    assert found == ({name: [("train.py:4", option, [4])]} if name else {})


@pytest.mark.parametrize(
    ("options", "name", "text"),
    [
        ("lossless=True, quality=100, method=6", "webp_method", "method=6"),
        ("'AVIF', speed=0", "avif_speed", "speed=0"),
        ("quality=80, method=4", None, ""),
        ("quality=100", None, ""),
        ("'AVIF', speed=8", None, ""),
    ],
)
def test_the_slowest_settings_of_an_encoder(options, name, text):
    call = f"Image.fromarray(pixels).save(path, {options})"
    found = search(PNG.replace("{option}", options), ("PIL/WebPImagePlugin.py", call))
    assert found == ({name: [("train.py:4", text, [4])]} if name else {})


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("LogisticRegression(solver='saga', max_iter=300)", "solver_without_scaling"),
        ("RidgeClassifier(solver='sag')", "solver_without_scaling"),
        ("LogisticRegression(solver='lbfgs')", None),
        ("make_pipeline(StandardScaler(), LogisticRegression(solver='saga'))", None),
        ("make_pipeline(TfidfVectorizer(), LogisticRegression(solver='saga'))", None),
    ],
)
def test_solvers_that_need_features_of_one_scale(model, name):
    homes = {"StandardScaler": "preprocessing", "TfidfVectorizer": "feature_extraction.text"}
    imports = [f"from sklearn.{home} import {one}" for one, home in homes.items() if one in model]
    source = [
        *imports,
        "from sklearn.linear_model import LogisticRegression, RidgeClassifier",
        f"model = {model}",
        "model.fit(x, y)",
    ]
    assert list(search("\n".join(source), "model.fit(x, y)")) == ([name] if name else [])


def test_a_block_that_limits_threads():
    source = """
    from threadpoolctl import threadpool_limits
    def main(a, b):
        with threadpool_limits(1):
            c = a @ b
        return a @ c
    """
    found = search(source, "c = a @ b", "return a @ c")
    assert found == {"one_thread_by_threadpoolctl": [("train.py:4", "threadpool_limits(1)", [5])]}


ROWS = """
import numpy as np
import torch
from datasets import load_from_disk
def main(path):
    strips = load_from_disk(path){with_format}
    for start in range(0, 100, 10):
        rows = strips[start : start + 10]
        x = torch.tensor(rows["strip"])
        fit(x, torch.tensor([1.0, 2.0]))
"""
GETS = ("datasets/arrow_dataset.py", "rows = strips[start : start + 10]")


class TestRowsOfDatasets:
    def test_rows_as_lists(self):
        found = search(ROWS.replace("{with_format}", ""), GETS, 'torch.tensor(rows["strip"])')
        assert found == {"rows_as_lists": [("train.py:9", 'torch.tensor(rows["strip"])', [9, 8])]}

    def test_rows_of_a_loop(self):
        source = """
        import numpy as np
        from datasets import Dataset
        def main(table):
            for row in Dataset.from_dict(table):
                fit(np.array(row["wave"]))
        """
        gets = ("datasets/arrow_dataset.py", "for row in Dataset.from_dict(table):")
        found = search(source, gets, 'np.array(row["wave"])')
        assert found["rows_as_lists"][0][2] == [6, 5]

    def test_rows_that_a_data_loader_gets(self):
        source = """
        import torch
        from datasets import load_from_disk
        from torch.utils.data import DataLoader
        def gather(rows):
            bands = torch.tensor([row["bands"] for row in rows], dtype=torch.float32)
            return bands
        def main(path, net):
            for bands in DataLoader(load_from_disk(path), collate_fn=gather):
                net(bands)
        """
        fetch = "torch/utils/data/_utils/fetch.py"
        got = ("datasets/arrow_dataset.py", fetch, "for bands in DataLoader")
        found = search(source, got, ('torch.tensor([row["bands"]', fetch))
        assert found["rows_as_lists"][0][2] == [6]
        pandas = ("pandas/core/frame.py", fetch, "for bands in DataLoader")
        assert search(source, pandas, ('torch.tensor([row["bands"]', fetch)) == {}
        assert search(source, got, 'torch.tensor([row["bands"]') == {}

    def test_rows_with_a_format(self):
        source = ROWS.replace("{with_format}", '.with_format("numpy")')
        assert search(source, GETS, 'torch.tensor(rows["strip"])') == {}

    def test_rows_of_another_object(self):
        other = 'torch.tensor(rows["strip"])'
        source = ROWS.replace("{with_format}", "")
        assert (
            search(source, "rows = strips[start : start + 10] < pandas/core/frame.py", other) == {}
        )
        assert search(source, GETS) == {}  # converting took no time


HALF = """
import numpy as np
DTYPE = np.float16
class Heat:
    def __init__(self, size):
        self.grid = np.zeros((size, size), dtype=np.half)
        self.wide = np.zeros((size, size), dtype=np.float32)
    def step(self):
        grid = self.grid
        inner = grid[1:-1]
        inner += grid[2:] + grid[:-2]
        return self.wide + self.grid.astype(np.float32)
def make(seed):
    cube = np.empty((8, 365), dtype=DTYPE)
    return cube
def weekly(values, other):
    total = values[:9].copy()
    total /= DTYPE(7)
    return total.std(axis=0)
def widened(values):
    return values.astype(np.float32).std(axis=0)
def unknown(values):
    return values.std(axis=1)
def main(table):
    cube = make(3)
    weekly(cube - cube.mean(axis=0), table)
    widened(cube)
    unknown(cube)
    unknown(table)
    mixed = cube * table
    np.exp(cube)
    cube.sum(dtype=np.float32)
    return mixed
"""


class TestNumberTypes:
    @pytest.mark.parametrize(
        ("text", "place"),
        [
            ("total /= DTYPE(7)", "train.py:3"),
            ("total.std(axis=0)", "train.py:3"),
            ("cube.mean(axis=0)", "train.py:3"),
            ("cube - cube.mean(axis=0)", "train.py:3"),
            ("inner += grid[2:] + grid[:-2]", "train.py:6"),
            ("values.astype(np.float32).std(axis=0)", None),
            ("self.wide + self.grid.astype(np.float32)", None),
            ("values.std(axis=1)", None),  # two callers give arrays of different types
            ("cube * table", None),
            ("np.exp(cube)", None),  # not slower
            ("cube.sum(dtype=np.float32)", None),
            ("np.empty((8, 365), dtype=DTYPE)", None),  # computes nothing
        ],
    )
    def test_lines_that_compute_with_half_precision(self, text, place):
        found = search(HALF, text)
        assert [one[0] for one in found.get("float16_arrays", [])] == ([place] if place else [])

    def test_a_program_with_unknown_files(self):
        assert search(f"import elsewhere\n{HALF}", "cube.mean(axis=0)") == {}


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ('import os\nos.environ["CUDA_LAUNCH_BLOCKING"] = "1"', "kernels_awaited"),
        ('import os\nos.environ["XLA_PYTHON_CLIENT_ALLOCATOR"] = "platform"',
         "jax_memory_by_driver"),
        ("import cupy as cp\ncp.cuda.set_allocator(None)", "memory_of_cupy_by_driver"),
        ("import torch\nif x:\n    torch.backends.cudnn.enabled = False", "cudnn_off"),
        ("from torch.backends import cudnn\ncudnn.benchmark = True", "cudnn_benchmark"),
        ("import torch.backends.cudnn as cudnn\ncudnn.benchmark = True", "cudnn_benchmark"),
        ("import lightning as L\nt = L.Trainer(benchmark=True)", "cudnn_benchmark_by_lightning"),
        ("import torch\ntorch.use_deterministic_algorithms(True, warn_only=True)",
         "deterministic"),
        ("import lightning as L\nt = L.Trainer(deterministic=True)", "deterministic_by_lightning"),
        (("from transformers import AutoModel\n"
         "m = AutoModel.from_pretrained('x', attn_implementation='eager')"), "attention_not_fused"),
        ("import torch\ntorch.backends.cuda.enable_flash_sdp(False)", "attention_fused_off"),
        (("from torch.nn.attention import SDPBackend, sdpa_kernel\n"
         "with sdpa_kernel(SDPBackend.MATH):\n    y = f(x)"), "attention_by_products"),
        ("import jax\njax.config.update('jax_default_matmul_precision', 'highest')",
         "jax_full_precision"),
        (("import tensorflow as tf\n"
         "tf.config.experimental.enable_tensor_float_32_execution(False)"),
         "tensorflow_without_tf32"),
    ],
)  # fmt: skip
def test_options_that_make_a_gpu_slow(source, name):
    assert list(search(source + "\nmain()", "main()")) == [name]


@pytest.mark.parametrize(
    "source",
    [
        'import os\nos.environ["CUDA_LAUNCH_BLOCKING"] = "0"',
        'import os\nos.environ["XLA_PYTHON_CLIENT_ALLOCATOR"] = "default"',
        "import torch\ntorch.backends.cudnn.enabled = True",
        "import torch\ntorch.backends.cudnn.benchmark = False",
        "import lightning as L\nt = L.Trainer(benchmark=False, deterministic='warn')",
        (
            "from torch.nn.attention import SDPBackend, sdpa_kernel\n"
            "with sdpa_kernel(SDPBackend.FLASH_ATTENTION):\n    y = f(x)"
        ),
        "import jax\njax.config.update('jax_default_matmul_precision', 'tensorfloat32')",
        # The program needs the weights of attention.
        (
            "from transformers import AutoModel\n"
            "m = AutoModel.from_pretrained('x', attn_implementation='eager')\nm(x).attentions"
        ),
    ],
)
def test_other_options_of_gpus(source):
    assert search(source + "\nmain()", "main()") == {}


class TestTable:
    def test_each_option_is_complete(self):
        names = [one.name for one in costly_options()]
        assert len(names) == len(set(names)) > 40
        for one in costly_options():
            assert not (one.calls and one.numbers), one.name
            assert "{option}" in one.advice or "{at}" in one.advice or one.is_slow_call, one.name
            assert bool(one.activities) is (one.rule == "known_activity"), one.name
            if one.gpu:  # a rule judges it by its symptom, and not by the time of its work
                assert one.certainty, one.name
                assert not any((one.rule, one.what)), one.name
                assert bool(one.kernels) is (one.regain[0] > 0), one.name
            if one.rule == KIND:
                assert one.is_slow_call, one.name
                assert one.certainty, one.name
            elif one.rule:
                words = (one.what, one.why, *one.files, *one.lines)
                assert not any(words), one.name
                continue
            assert one.what or one.gpu, one.name
            assert one.why, one.name
            assert "{" not in one.what, one.name
            if one.rule != KIND:  # only this rule puts words into it
                assert "{" not in one.why or one.columns or one.is_slow_call, one.name
            is_built = one.rule == KIND or one.is_slow_call  # words at the end are sentences
            assert one.advice.endswith((".", "}") if is_built else "."), one.name
            assert 0 <= one.regain[0] < one.regain[1] <= 1, one.name
            is_placed = one.files or one.lines or one.is_on_stacks or one.is_slow_call
            assert is_placed or one.gpu, one.name

    def test_each_pattern_is_valid(self):
        for one in costly_options():
            for pattern in (*one.calls, *one.others, *one.unless, one.value, one.numbers):
                re.compile(pattern)
            # Patterns of one option are joined.
            for patterns in (one.calls, one.unless, one.files, one.lines, one.rows_of):
                joined = re.compile("|".join(f"(?:{pattern})" for pattern in patterns))
                # A pattern that fits everything would be an option of each call.
                assert not patterns or not joined.fullmatch("a_call_of_mine"), one.name

    @pytest.mark.parametrize(
        ("name", "end"),
        [
            (r"torch\.(save|load)", "(save|load)"),
            (r"\.save", "save"),
            (r"os\.environ\[(OMP|MKL)_NUM_THREADS\]", "(OMP|MKL)_NUM_THREADS"),
            (r"matplotlib\.rcParams\[text\.usetex\]", "usetex"),
            (r"(a|b\.c)\.(train|sklearn\.XGB\w+)", r"(train|sklearn\.XGB\w+)"),
        ],
    )
    def test_the_last_word_of_a_name(self, name, end):
        assert ends([name]) == (end,)

    def test_a_new_option_is_one_entry(self):
        one = Option(
            name="a", calls=("b",), files=("c",), what="d", why="e", advice="Remove {option}."
        )
        assert not one.needs_all_files
        assert not one.is_on_stacks


@pytest.mark.parametrize("text", ["def f(:\n", "import numpy as np\nnp.linalg.svd(a)[1", "\x00"])
def test_a_file_that_cannot_be_parsed_says_nothing(text):
    own = OwnFiles([MAIN], lambda _: text.encode(), installed)
    assert own.all_parsed is None
    frames = [Frame(MAIN, "main", 2, "np.linalg.svd(a)")]
    assert OptionSearch(own).found([frames], [MAIN]) == []


POOL = """
    from multiprocessing import Pool
    SIZES = 54
    def main():
        with Pool(2) as pool:
            rows = pool.map(score, tasks, chunksize=SIZES // 2)
"""


@pytest.mark.parametrize(
    ("option", "count"),
    [
        ("chunksize=SIZES // 2", 1),
        ("chunksize=100", 1),
        ("chunksize=1", 0),
        ("callback=done", 0),
    ],
)
def test_tasks_in_large_parts(option, count):
    found = search(POOL.replace("chunksize=SIZES // 2", option), "rows = pool.map(")
    expected = [("train.py:6", option, [])] if count else []
    assert found.get("tasks_in_large_parts", []) == expected


def test_files_that_cannot_be_read():
    own = OwnFiles([MAIN, "<stdin>"], lambda _: False, installed)
    assert not own.is_complete
    assert OptionSearch(own).found([], own.reached([MAIN])) == []


def test_a_program_with_very_many_files_is_not_complete():
    own = OwnFiles(
        [MAIN],
        lambda path: f"import a{len(path)}, {path.rpartition('/')[2][:-3]}x\n".encode(),
        installed,
    )
    assert not own.is_complete
    assert len(own.texts) <= 60


def test_another_program_on_the_node_may_need_an_option_but_does_not_have_it():
    texts = {MAIN: SVM, "/home/ada/other.py": "m.predict_proba(x)\n"}
    read = {path: text.encode() for path, text in texts.items()}.get
    both = OwnFiles(list(texts), read, installed)
    assert OptionSearch(both).found([], [MAIN]) == []
    texts["/home/ada/other.py"] = "import numpy\n"
    read = {path: text.encode() for path, text in texts.items()}.get
    both = OwnFiles(list(texts), read, installed)
    search = OptionSearch(both)
    assert [one.name for one in search.found([], both.reached([MAIN]))] == ["svm_probability"]
    assert search.found([], both.reached(["/home/ada/other.py"])) == []


GROUPS = """
import pyarrow.parquet as pq
ROWS = 96
def store(table, path):
    {write}
def main(path):
    return pq.read_table(path, columns=["a"])
"""


@pytest.mark.parametrize(
    ("write", "is_found"),
    [
        ("pq.write_table(table, path, row_group_size=96, compression='snappy')", True),
        ("pq.write_table(table, path, row_group_size=ROWS)", True),
        ("table.to_parquet(path, row_group_size=1000)", True),
        ("table.write_parquet(path, row_group_size=50)", True),
        ("with pq.ParquetWriter(path) as file: file.write_table(table, row_group_size=96)", True),
        # ---- which look like it ----
        ("pq.write_table(table, path, row_group_size=100_000)", False),
        ("pq.write_table(table, path, row_group_size=5000)", False),
        ("pq.write_table(table, path, row_group_size=len(table))", False),
        ("pq.write_table(table, path)", False),
        ("own.write_rows(table, path, row_group_size=96)", False),
        ("pq.write_table(table, path, row_group_size=96) if small else None", False),
        # Which of the two files takes the time?
        ("pq.write_table(table, path, row_group_size=96); pq.write_table(table, path)", False),
    ],
)
def test_small_groups_of_rows(write, is_found):
    assert ("parquet_small_groups" in search(GROUPS.format(write=write), write)) is is_found


@pytest.mark.parametrize(
    ("call", "imported", "is_found"),
    [
        ("vectorizer.fit_transform(texts).toarray()", "LogisticRegression", True),
        ("self.tfidf.transform(texts).todense()", "LogisticRegression", True),
        ("TfidfVectorizer().fit_transform(texts).toarray()", "LogisticRegression", True),
        # ---- which look like it ----
        ("vectorizer.fit_transform(texts)", "LogisticRegression", False),
        ("vectorizer.fit_transform(texts).toarray()", "BayesianRidge", False),
        ("matrix.toarray()", "LogisticRegression", False),
        ("encoder.fit_transform(texts).toarray()", "LogisticRegression", False),
    ],
)
def test_texts_as_dense_matrices(call, imported, is_found):
    source = f"""
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import {imported}
        def fit(self, vectorizer, texts, labels, matrix, encoder):
            x = {call}
            return {imported}().fit(x, labels)
    """
    names = search(source, [".fit(x, labels)", "sklearn/linear_model/_base.py"][::-1])
    assert ("sparse_texts_made_dense" in names) is is_found


def test_the_call_that_makes_one_part_for_each_worker():
    source = """
    import numpy as np
    WORKERS = 2
    def main(pool, rows):
        return pool.map(work, np.array_split(np.arange(rows), WORKERS))
    """
    call = "np.array_split(np.arange(rows), WORKERS)"
    assert search(source, call)["parts_of_equal_length"] == [("train.py:5", call, [])]
