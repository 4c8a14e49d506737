"""Work that a loop does again with the same inputs, found from a stack and the source."""

from __future__ import annotations

import ast

import pytest

from source.stacks import stack_of
from teho.model.stack import Frame
from teho.source.parsed import parsed
from teho.source.program import Place, Program
from teho.source.purity import Purity
from teho.source.repeated import find_repeated


def found(source, *stack):
    """Return what is repeated in each loop: its text, the text of the loop, and whether it is same.

    See `stack_of`.
    """
    return [(one.calls[-1].text, one.loop.text, one.is_same) for one in repeated(source, *stack)]


def repeated(source, *stack):
    """Return what is repeated in each loop; see `stack_of`."""
    return find_repeated(*stack_of(source, *stack))


def test_a_filter_that_is_made_again_for_each_clip():
    source = """
    RATE = 16000
    def bank(rate, bands):
        matrix = np.zeros((bands, bands))
        for band in range(bands):
            matrix[band] = np.linspace(0, rate, bands) * band
        return matrix
    def features(clip, rate):
        return bank(rate, 64) @ clip
    def main():
        clips = [np.ones(64) for _ in range(10)]
        for epoch in range(3):
            for clip in clips:
                fit(features(clip, RATE))
    """
    stack = ("features(clip, RATE)", "bank(rate, 64)", "np.linspace(0, rate, bands)")
    assert found(source, *stack) == [
        ("bank(rate, 64)", "for epoch in range(3)", True),
        # The features of all clips are also the same in each epoch.
        ("features(clip, RATE)", "for epoch in range(3)", False),
    ]


def test_of_a_data_set_what_does_not_depend_on_the_index():
    source = """
    class Spectra(torch.utils.data.Dataset):
        def __init__(self, path):
            self.path = path
        def __getitem__(self, index):
            table = np.loadtxt(self.path)
            return np.fft.rfft(table[index])
    def main(loader):
        for epoch in range(5):
            for batch in loader:
                step(batch)
    """
    inside = "lib:torch/utils/data/dataloader.py:_BaseDataLoaderIter.__next__"
    fetch = "lib:torch/utils/data/_utils/fetch.py:_MapDatasetFetcher.fetch"
    stack = ("for batch in loader:", inside, fetch)
    assert found(source, *stack, "np.loadtxt(self.path)") == [
        ("np.loadtxt(self.path)", "for epoch in range(5)", True)
    ]
    # The loop over the loader asks for other indices each time, each epoch for the same ones.
    assert found(source, *stack, "np.fft.rfft(table[index])") == [
        ("np.fft.rfft(table[index])", "for epoch in range(5)", False)
    ]


def test_a_worker_of_a_loader_has_no_loop_on_its_stack():
    source = """
    class Spectra(torch.utils.data.Dataset):
        def __init__(self, path):
            self.path = path
        def __getitem__(self, index):
            table = np.loadtxt(self.path)
            return np.fft.rfft(table[index])
    """
    fetch = "lib:torch/utils/data/_utils/fetch.py:_MapDatasetFetcher.fetch"
    assert found(source, fetch, "np.loadtxt(self.path)") == [
        ("np.loadtxt(self.path)", "def __getitem__(self, index)", True)
    ]
    assert found(source, fetch, "np.fft.rfft(table[index])") == []


LOOPS = {
    "a factorised matrix": ("lu_factor(matrix)", "", True),
    "a matrix that changes": ("lu_factor(matrix)", "matrix[0, 0] += 1", False),
    "a matrix that is another one": ("lu_factor(matrix)", "matrix = matrix + 1", False),
    "a matrix that a method changes": ("lu_factor(matrix)", "matrix.fill(2)", False),
    "a matrix that a function changes": ("lu_factor(matrix)", "relax(matrix)", False),
    "a matrix that `out` changes": ("lu_factor(matrix)", "np.add(matrix, 1, out=matrix)", False),
    "a matrix that a library changes": ("lu_factor(matrix)", "dist.all_reduce(matrix)", False),
    "a matrix that is gathered": ("trace(matrix)", "dist.all_gather_object(matrix, step)", False),
    "a matrix that is saved": ("lu_factor(matrix)", "np.save('a.npy', matrix)", True),
    "a matrix that is printed": ("lu_factor(matrix)", "print(matrix)", True),
    "a matrix of which a norm is taken": ("lu_factor(matrix)", "x = np.linalg.norm(matrix)", True),
    "a matrix that a function reads": ("lu_factor(matrix)", "trace(matrix)", True),
    "random numbers": ("np.random.normal(0, 1, 10)", "", False),
    "a generator's numbers": ("rng.normal(size=10)", "", False),
    "numbers of a fixed seed": ("np.random.default_rng(0)", "", True),
    "the step itself": ("np.eye(step)", "", False),
    "a value of the step": ("np.eye(size)", "size = step + 1", False),
    "a value that is always the same": ("np.eye(size)", "size = len(matrix)", True),
    "a function with an effect": ("noisy(matrix)", "", False),
    "a function that waits": ("camera(1)", "", False),
    "a cached function": ("cached(3)", "", False),
    "a generator": ("next(stream)", "", False),
    "a file": ("file.read(100)", "", False),
    "a piece of a file": ("np.fromfile(file, count=100)", "", False),
    "a piece of a file in a function": ("piece_of(file)", "", False),
    "a file that another function reads": ("np.fromfile(file, count=9)", "piece_of(file)", False),
    "a piece of an iterator": ("np.fromiter(pieces, float, 100)", "", False),
    "a piece of a file of a path": ("np.fromfile(archive, count=100)", "", False),
    "the name of a file": ("np.fromfile(path)", "", True),
    "rows of an image": ("np.asarray(image)", "", True),
    "a table that is read again": ("pd.read_csv('a.csv')", "", True),
    "parameters": ("torch.linalg.svd(weights)", "", False),
    "an attribute of an object": ("np.linalg.inv(model.weight)", "", False),
    "an unknown function": ("unknown(matrix)", "", False),
}


@pytest.mark.parametrize(("expression", "other", "is_found"), LOOPS.values(), ids=[*LOOPS])
def test_a_result_is_the_same_only_if_no_input_changes(expression, other, is_found):
    source = f"""
    weights = nn.Parameter(torch.zeros(3))
    def relax(grid):
        grid[1:-1] = (grid[2:] + grid[:-2]) / 2
    def trace(grid):
        return np.trace(grid)
    def noisy(grid):
        print("inverting")
        return np.linalg.inv(grid)
    def piece_of(handle):
        return np.fromfile(handle, count=100)
    def camera(number):
        time.sleep(0.1)
        return np.ones(3)
    @functools.lru_cache
    def cached(size):
        return np.identity(size)
    def main(model, stream):
        matrix = np.ones((3, 3))
        rng = np.random.default_rng(0x1)
        file = open("data.bin", "rb")
        archive = model.path.open("rb")
        path = "data.bin"
        image = Image.open("a.png")
        pieces = iter(matrix)
        for step in range(100):
            result = {expression}
            {other or "pass"}
            model.update(result)
    """
    expected = [(expression, "for step in range(100)", True)] if is_found else []
    assert found(source, expression) == expected


@pytest.mark.parametrize("last", ["grid[0] += 1", "print(grid[0])"])
def test_a_change_is_found_however_many_functions_it_is_away(last):
    chain = "\n".join(
        f"def pass_{number}(grid):\n    same = grid\n    pass_{number + 1}(same)"
        for number in range(12)
    )
    source = f"""
def main():
    matrix = np.ones((3, 3))
    for step in range(100):
        result = np.linalg.inv(matrix)
        pass_0(matrix)
        fit(result)
{chain}
def pass_12(grid):
    {last}
"""
    call = "np.linalg.inv(matrix)"
    is_changed = "+=" in last
    assert found(source, call) == ([] if is_changed else [(call, "for step in range(100)", True)])


USES = {
    "read": ("fit(table)", False),
    "an item is set": ("table[step] += 1", True),
    "sorted": ("table.sort()", True),
    "a part is changed": ("row = table[0]; row[1] = 3", True),
    "a new object": ("table = table + 1; fit(table)", False),
    "a function changes it": ("relax(table)", True),
    "a function reads it": ("trace(table)", False),
    "no name": ("relax(make(3))", True),
}


@pytest.mark.parametrize(("use", "is_changed"), USES.values(), ids=[*USES])
def test_whether_the_program_changes_the_result(use, is_changed):
    first = "pass" if "make(3)" in use else "table = make(3)"
    source = f"""
    def make(size):
        return np.linalg.inv(np.eye(size))
    def relax(grid):
        grid[1:-1] = 0
    def trace(grid):
        return np.trace(grid)
    def main(model):
        for step in range(100):
            {first}
            {use}
    """
    (one,) = repeated(source, "make(3)")
    assert one.is_same
    assert one.is_changed is is_changed


@pytest.mark.parametrize(
    ("returned", "is_changed"),
    [("grid", True), ("grid.T", True), ("[grid, 1]", True), ("grid + 1", False)],
)
def test_the_caller_may_change_the_result(returned, is_changed):
    source = f"""
    def make(size):
        grid = np.linalg.inv(np.eye(3))
        print("inverted")
        return {returned}
    def main(model):
        for step in range(100):
            parts = make(3)
            parts[0] += step
    """
    (one,) = repeated(source, "make(3)", "np.linalg.inv(np.eye(3))")
    assert one.calls[-1].text == "np.linalg.inv(np.eye(3))"  # the other call writes a text
    assert one.is_changed is is_changed


MAKERS = {
    "a full array": ("np.full(n + 1, np.inf)", False),
    "zeros": ("np.zeros((n, 3))", False),
    "zeros of the same shape": ("np.zeros_like(matrix)", False),
    "a list of zeros": ("[0] * n", False),
    "a copy": ("matrix.copy()", False),
    "a list of a range": ("list(range(n))", False),
    "an inverse": ("np.linalg.inv(matrix)", True),
    "an array of numbers that are computed": ("np.sqrt(matrix)", True),
    "a list of computed items": ("list(map(str, matrix))", True),
}


@pytest.mark.parametrize(("call", "is_found"), MAKERS.values(), ids=[*MAKERS])
@pytest.mark.parametrize("change", ["fresh[1] = step", "np.add(fresh, 1, out=fresh)", "fresh += 1"])
def test_a_new_object_that_is_changed_costs_as_much_as_a_copy(call, is_found, change):
    source = f"""
    def main(matrix, n):
        for step in range(100):
            fresh = {call}
            {change}
            fit(fresh)
    """
    assert bool(found(source, call)) is is_found


def test_a_new_object_that_is_only_read_may_be_kept():
    source = """
    def main(matrix, n):
        for step in range(100):
            fresh = np.zeros(n)
            fit(fresh)
    """
    assert found(source, "np.zeros(n)") == [("np.zeros(n)", "for step in range(100)", True)]


def test_a_function_that_only_makes_an_object():
    source = """
    def empty(n):
        grid = np.zeros((n, n))
        return grid
    def filled(n):
        grid = np.zeros((n, n))
        grid[0] = np.fft.fft(np.ones(n))
        return grid
    def main(n):
        for step in range(100):
            a, b = empty(n), filled(n)
            a[0] = step
            b[0] = step
    """
    assert found(source, "empty(n)", "np.zeros((n, n))") == []
    assert found(source, "filled(n)", "np.fft.fft(np.ones(n))") != []


def test_an_operation_in_place_is_not_the_call_in_its_value():
    source = """
    def cost(a, b):
        local = a @ b.T
        local += (a * a).sum(axis=1)[:, None]
        local -= np.sin(a)
        return local
    def main(phrases):
        first = np.ones((3, 3))
        for other in phrases:
            fit(cost(first, other))
    """
    loop = "for other in phrases"
    assert found(source, "cost(first, other)", "local += (a * a).sum(axis=1)[:, None]") == []
    assert found(source, "cost(first, other)", "local -= np.sin(a)") == []
    assert found(source, "cost(first, other)", "(a * a).sum(axis=1)") == [
        ("(a * a).sum(axis=1)", loop, True)
    ]
    assert found(source, "cost(first, other)", "np.sin(a)") == [("np.sin(a)", loop, True)]


def test_a_result_that_is_not_used():
    source = """
    def main(model):
        for step in range(9):
            model.refresh(np.eye(3))
            np.linalg.inv(np.eye(3))
    """
    assert found(source, "np.linalg.inv(np.eye(3))") == []


def test_a_file_that_is_read_in_parts():
    source = """
    def main(path):
        for turn in range(3):
            file = open(path, "rb")
            while part := file.read(4096):
                use(part)
    """
    assert found(source, "file.read(4096)") == []


def test_a_file_of_a_caller_that_is_read_in_pieces():
    source = """
    def power(raw):
        return np.fft.rfft(raw)
    def scan(night):
        for turn in range(3):
            raw = np.fromfile(night, count=4096)
            use(power(raw))
    def main(path):
        with open(path, "rb") as night:
            scan(night)
    """
    assert found(source, "scan(night)", "power(raw)") == []


def test_a_file_that_is_opened_in_each_iteration_has_the_same_content():
    source = """
    def main(path):
        for turn in range(3):
            with open("data.bin", "rb") as night:
                use(np.fft.rfft(np.fromfile(night)))
    """
    call = "np.fft.rfft(np.fromfile(night))"
    assert found(source, call) == [(call, "for turn in range(3)", True)]


def test_an_order_that_is_shuffled_has_the_same_items():
    source = """
    def main(graphs, rng):
        graphs = [np.ones((3, 3)) for _ in range(9)]
        order = list(range(9))
        for epoch in range(5):
            rng.shuffle(order)
            for begin in range(0, 9, 3):
                batch = np.stack([graphs[one] for one in order[begin : begin + 3]])
                for number in order[begin : begin + 3]:
                    values = np.linalg.eigh(graphs[number])
                fit(values, np.exp(batch))
    """
    assert found(source, "np.linalg.eigh(graphs[number])") == [
        ("np.linalg.eigh(graphs[number])", "for epoch in range(5)", False)
    ]
    assert found(source, "np.exp(batch)") == []


def test_a_repeated_measurement_is_intended():
    source = """
    def main(matrix):
        for rep in range(9):
            begin = time.perf_counter()
            inverse = np.linalg.inv(matrix)
            times.append(time.perf_counter() - begin)
    """
    assert found(source, "np.linalg.inv(matrix)") == []


def test_attributes_that_only_the_constructor_sets_are_the_same():
    source = """
    class Model:
        def __init__(self, size):
            self.size = size
            self.state = np.zeros(size)
        def run(self):
            for step in range(9):
                kernel = np.eye(self.size)
                drift = np.exp(self.state)
                self.state[step] = drift.sum()
    def main():
        Model(3).run()
    """
    assert found(source, "Model(3).run()", "np.eye(self.size)") == [
        ("np.eye(self.size)", "for step in range(9)", True)
    ]
    assert found(source, "Model(3).run()", "np.exp(self.state)") == []


def test_a_function_that_a_library_calls_again_and_again():
    source = """
    class Net(nn.Module):
        def __init__(self, length):
            super().__init__()
            self.length = length
            self.scale = nn.Parameter(torch.ones(1))
        def forward(self, x):
            mask = torch.triu(torch.ones(self.length, self.length))
            scaled = torch.exp(self.scale)
            return x * mask * scaled
    """
    module = "lib:torch/nn/modules/module.py:Module._call_impl"
    mask = "torch.triu(torch.ones(self.length, self.length))"
    assert found(source, module, mask) == [(mask, "def forward(self, x)", True)]
    assert found(source, module, "torch.exp(self.scale)") == []


@pytest.mark.parametrize("text", [b"def f(:\n", b"\x00", b"x = " + b"(" * 300, b"x\n" * 600_000])
def test_a_file_that_cannot_be_parsed_says_nothing(text):
    assert parsed(text) is None
    frames = [Frame("/home/ada/train.py", "main", 1, "f(x)")]
    assert find_repeated(frames, Purity(Program(lambda _: parsed(text)))) == []


def test_a_line_that_the_file_does_not_have():
    frames = [Frame("/home/ada/train.py", "main", 9, "f(x)")]
    assert find_repeated(frames, Purity(Program(lambda _: parsed(b"f(x)\n")))) == []


ALIAS = """
REAL = np.longdouble
DEPTHS = np.linspace(0.018, 0.030, 6)
def kernel(square, depth):
    return np.sqrt(square * depth) * REAL(depth)
def refocus(square, frame):
    scores = []
    for depth in DEPTHS:
        scores.append(kernel(square, depth) * frame)
    return scores
def main(square):
    for frame in range(6):
        fit(refocus(square, frame))
"""


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [
        ("", "", 1),
        ("np.longdouble\n", "np.float64 if fast else np.longdouble\n", 0),
        ("np.longdouble\n", "np.longdouble\nREAL = np.float64\n", 0),
        ("REAL = np.longdouble", "REAL, _ = np.kinds", 0),
        ("REAL = np.longdouble", "REAL = model.kind", 0),
        ("np.longdouble\n", "np.random.normal\n", 0),
    ],
)
def test_another_name_of_a_function_of_a_library(old, new, count):
    source = ALIAS.replace(old, new) if old else ALIAS
    stack = ("refocus(square, frame)", "kernel(square, depth)", "np.sqrt(square * depth)")
    texts = [text for text, _, _ in found(source, *stack)]
    assert texts.count("kernel(square, depth)") == count


def test_a_vocabulary_that_is_copied_for_each_text():
    source = """
    def rows(tok, texts):
        for text in texts:
            vocab = tok.get_vocab()
            keep([vocab["[CLS]"]] + tok.encode(text).ids)
    """
    assert found(source, "tok.get_vocab()") == [
        ("tok.get_vocab()", "for text in texts", True),
    ]


def test_a_vocabulary_that_grows():
    source = """
    def rows(tok, texts):
        for text in texts:
            tok.add_tokens(text.split())
            keep(tok.get_vocab())
    """
    assert found(source, "tok.get_vocab()") == []


PAIRS = """
def clean(text):
    return re.sub(r"[^a-z ]+", " ", text.lower()).split()
def kin(stones, start):
    texts = sorted(stones)
    n = len(texts)
    for i in range(n):
        {loop}
            words = clean({text})
            {rest}
"""


@pytest.mark.parametrize(
    ("loop", "text", "is_found"),
    [
        ("for j in range(i + 1, n):", "texts[j]", True),
        ("for j in range(i):", "texts[j]", True),
        ("for j in range(0, i):", "texts[j]", True),
        ("for other in texts[i + 1:]:", "other", True),
        ("for other in texts[:i]:", "other", True),
        ("for j, other in enumerate(texts[i + 1:], i + 1):", "other", True),
        # ---- which look like it ----
        ("for j in range(i, i + 9):", "texts[j]", False),
        ("for j in range(i, n, 9):", "texts[j]", False),
        ("for other in texts[i:i + 9]:", "other", False),
        ("for other in texts[i::9]:", "other", False),
        ("for other in texts[i]:", "other", False),
        ("for j in range(i, start[i]):", "texts[j]", False),
        ("for j in range(len(start[i])):", "texts[j]", False),
        ("for j, other in enumerate(texts[i + 1:]):", "other + texts[j]", False),
    ],
)
def test_pairs_for_which_each_item_is_prepared_again(loop, text, is_found):
    source = PAIRS.format(loop=loop, text=text, rest="compare(words)")
    stack = (f"clean({text})", "text.lower()")
    expected = [(f"clean({text})", "for i in range(n)", False)] if is_found else []
    assert found(source, *stack) == expected
    # Each iteration may go on where the one before has ended.
    early = PAIRS.format(loop=loop, text=text, rest="if compare(words): break")
    assert found(early, *stack) == []


def test_what_a_call_calls_depends_on_the_function_around_it():
    file = parsed(b"def main():\n    def loss(): pass\n    def evaluate():\n        loss()\n")
    program = Program({"a.py": file}.get)
    (call,) = (one for one in ast.walk(file.module.node) if isinstance(one, ast.Call))
    assert program.called(call, Place("a.py", file.module)) is None
    assert isinstance(program.called(call, Place("a.py", file.function_at(4))), Place)
