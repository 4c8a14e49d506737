"""Calls that are slow on a GPU, found in whole files; and programs that look like them."""

from __future__ import annotations

import textwrap

import pytest

from source.stacks import stack_of
from teho.explain.options import in_words
from teho.model.stack import Frame
from teho.source.gpu_calls.lengths import largest_factor
from teho.source.options.files import OwnFiles
from teho.source.options.search import OptionSearch
from teho.source.options.table import costly_options
from teho.source.parsed import parsed
from teho.source.repeated import find_repeated

MAIN = "/home/ada/train.py"
INSTALLED = frozenset(("numpy", "scipy", "torch", "jax", "cupy", "cupyx", "numba"))
OPTIONS = {one.name: one for one in costly_options()}
NAMES = {name for name, one in OPTIONS.items() if one.gpu or name.startswith("slow_length")}


def calls(source, *on_stacks):
    """Return the calls of a program: name -> words of the advice, and the places.

    Args:
        source: the program.
        on_stacks: texts of lines that are on stacks.
    """
    text = textwrap.dedent(source)
    file = parsed(text.encode())
    assert file is not None
    stacks = [[_frame(file, one)] for one in on_stacks]
    own = OwnFiles([MAIN], {MAIN: text.encode()}.get, lambda: INSTALLED)
    found = OptionSearch(own).found(stacks, [MAIN])
    for one in found:
        if one.name in NAMES:
            advice = in_words(OPTIONS[one.name].advice, [one.at], one.words)
            assert "{" not in advice
            OPTIONS[one.name].why.format(**one.words)
    return {one.name: one for one in found if one.name in NAMES}


def _frame(file, text):
    lines = [line.decode() for line in file.lines]
    (number,) = [number for number, line in enumerate(lines, 1) if text in line]
    return Frame(MAIN, file.function_at(number).name or "<module>", number, text)


# ---- QR decompositions of many matrices ----

MANY = [
    "import torch\ndef f(n):\n    v = torch.eye(9).repeat(n, 1, 1)\n    torch.linalg.qr(v)\n",
    "import torch\ndef f(v):\n    q, r = torch.linalg.qr(v)\n    r.diagonal(dim1=1, dim2=2)\n",
    (
        "import torch\ndef f(v):\n    q, r = torch.linalg.qr(v)\n"
        "    return torch.diagonal(r, dim1=-2, dim2=-1)\n"
    ),
    (
        "import torch as t\ndef f(b):\n    a = t.randn(b, 8, 4, device='cuda')\n"
        "    return t.linalg.qr(a)[0]\n"
    ),
    (
        "from torch import linalg, zeros\nimport torch\n"
        "def f(b):\n    a = torch.zeros((b, 8, 4))\n    return linalg.qr(a, mode='reduced')\n"
    ),
    (
        "import torch\ndef ortho(w):\n    return torch.linalg.qr(w).Q\n"
        "def main():\n    w = torch.rand(64, 9, 9)\n    for _ in range(9):\n        w = ortho(w)\n"
    ),
    (
        "import torch\nclass M:\n    def step(self, w):\n        return torch.linalg.qr(w)[0]\n"
        "    def run(self, x):\n        all = x.view(-1, 3, 3)\n        return self.step(all)\n"
    ),
    "import torch\ndef f(x):\n    return torch.vmap(torch.linalg.qr)(x)\n",
    "import torch\ndef f(v, w):\n    p = torch.bmm(v, w)\n    return torch.linalg.qr(v)\n",
    "import torch\ndef f(v):\n    print(v[:, 0, 1])\n    return torch.linalg.qr(v)\n",
    "import torch\ndef f(v):\n    w = v.transpose(1, 2)\n    return torch.linalg.qr(v)\n",
    "import cupy as cp\ndef f(n):\n    a = cp.zeros((n, 6, 6))\n    return cp.linalg.qr(a)\n",
    (
        "import jax, jax.numpy as jnp\ndef f(k):\n    a = jax.random.normal(k, (99, 6, 6))\n"
        "    return jnp.linalg.qr(a)\n"
    ),
    "import jax\nimport jax.numpy as jnp\ndef f(a):\n    return jax.vmap(jnp.linalg.qr)(a)\n",
]
SINGLE = [
    "import torch\ndef f(n):\n    v = torch.randn(4096, n)\n    return torch.linalg.qr(v)\n",
    "import torch\ndef f(v):\n    q, r = torch.linalg.qr(v)\n    return r.diagonal()\n",
    "import torch\ndef f(v):\n    q, r = torch.linalg.qr(v)\n    return q[:, :3], r.mT, q.T\n",
    "import torch\ndef f(v):\n    w = v[:, :, None]\n    return torch.linalg.qr(v)\n",
    "import torch\ndef f(v):\n    return torch.linalg.qr(v, mode='r'), v[0, 1, 2]\n",
    "import torch\ndef f(v):\n    return torch.linalg.qr(v, mode='complete'), v[0, 1, 2]\n",
    "import numpy as np\ndef f(n):\n    a = np.zeros((n, 6, 6))\n    return np.linalg.qr(a)\n",
    "import torch\ndef f(n):\n    a = torch.zeros(n, 6, 6)\n    return torch.linalg.cholesky(a)\n",
    "import torch\ndef f(n):\n    a = torch.zeros(n, 6, 6)\n    return torch.linalg.eigh(a)\n",
    "import torch\ndef f(ws):\n    return [torch.linalg.qr(w) for w in ws]\n",
    (
        "import torch, numpy as np\ndef f():\n    a = np.random.normal(0, 1, 9)\n"
        "    return torch.linalg.qr(a)\n"
    ),
]


@pytest.mark.parametrize("source", MANY)
def test_many_matrices(source):
    (name,) = calls(source)
    assert name.startswith("qr_one_by_one_")


@pytest.mark.parametrize("source", SINGLE)
def test_other_matrices(source):
    assert calls(source) == {}


# ---- parameters that are indexed with a tensor ----

MODEL = """
import torch
import torch.nn as nn
import torch.nn.functional as F
class Net(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.table = {made}
        self.register_buffer("pairs", torch.zeros(49, dtype=torch.long))
    def {method}(self, {params}):
        {first}
        return {use}
def main(model, batches, opt):
    for z, y in batches:
        F.mse_loss(model(z), y).{backward}()
"""
MADE = "nn.Parameter(torch.randn(20, width) * 0.1)"


def model(
    use="self.table[z] * 2",
    made=MADE,
    params="z, x",
    first="pass",
    method="forward",
    backward="backward",
):
    found = calls(MODEL.format(**locals()))
    return found["parameter_indexed"].words["new"] if found else None


@pytest.mark.parametrize(
    ("facts", "new"),
    [
        ({}, "F.embedding(z, self.table)"),
        ({"made": "torch.nn.Parameter(torch.zeros((20, width)))"}, "F.embedding(z, self.table)"),
        ({"made": "nn.Parameter(torch.rand(20, width).to('cuda'))"}, "F.embedding(z, self.table)"),
        ({"made": "nn.Parameter(torch.ones(20))"},
         "F.embedding(z, self.table[:, None]).squeeze(-1)"),
        ({"made": "nn.Parameter(start)"},
         "self.table.index_select(0, z.reshape(-1)).reshape(z.shape + self.table.shape[1:])"),
        ({"made": "nn.Embedding(20, 64)", "use": "self.table.weight[z]"},
         "F.embedding(z, self.table.weight)"),
        ({"use": "self.table[self.pairs.view(-1)]"},
         "F.embedding(self.pairs.view(-1), self.table)"),
        ({"use": "self.table[self.pairs]"}, "F.embedding(self.pairs, self.table)"),
        ({"first": "kind = z.long()", "use": "self.table[kind]"},
         "F.embedding(kind, self.table)"),
        ({"first": "kind = x.argmax(-1)", "use": "self.table[kind] + x"},
         "F.embedding(kind, self.table)"),
        ({"first": "kind = torch.bucketize(x, x)", "use": "self.table[kind]"},
         "F.embedding(kind, self.table)"),
        ({"params": "z: torch.Tensor"}, "F.embedding(z, self.table)"),
        ({"method": "energy_of"}, "F.embedding(z, self.table)"),
    ],
)  # fmt: skip
def test_indexed_parameters(facts, new):
    assert model(**facts) == new


@pytest.mark.parametrize(
    "facts",
    [
        {"use": "self.table[0]"},
        {"use": "self.table[:8]"},
        {"use": "self.table[:, z]"},
        {"use": "self.table[None]"},
        {"use": "self.table[x > 0]"},
        {"use": "self.table[len(z)]"},
        {"use": "[self.table[i] for i in range(8)]"},
        {"use": "self.other[z]"},
        {"use": "F.embedding(z, self.table)"},
        {"use": "self.table(z)", "made": "nn.Embedding(20, 64)"},
        {"use": "self.table[layer]", "params": "z, layer"},
        {"use": "self.table[k]", "params": "z, k"},
        {"use": "self.table[k_id]", "params": "z, k_id: int"},
        {"use": "self.table[z]", "params": "x, z=0"},
        {"use": "self.table[self.depth]"},
        {"first": "n = 3", "use": "self.table[n]"},
        {"made": "torch.randn(20, width)"},
        {"made": "nn.Parameter(torch.randn(20, width), requires_grad=False)"},
        {"made": "nn.Parameter(torch.randn(500_000, width))"},
        {"made": "nn.Linear(20, 64)"},
        {"method": "register"},
        {"backward": "item"},
    ],
)
def test_other_indexing(facts):
    assert model(**facts) is None


def test_a_variable_that_needs_gradients():
    source = """
    import torch
    def model(z):
        return table[z]
    table = torch.randn(8, 32, device="cuda", requires_grad=True)
    model(z).sum().backward()
    """
    (found,) = calls(source).values()
    assert found.words["new"] == "torch.nn.functional.embedding(z, table)"
    assert found.at.line == 4


# ---- loops of JAX ----

SCAN = """
import jax
import jax.numpy as jnp
from jax import lax
SPAN = 4096
def series(keep, gain, rain, start):
    {step}
    {statement}
    return {result}
"""
STEP = "def step(s, x):\n        s = keep * s + gain * x\n        return s, s"
STATEMENT = "_, levels = jax.lax.scan(step, jnp.zeros_like(keep), rain)"


def scan(step=STEP, statement=STATEMENT, result="levels"):
    return calls(SCAN.format(step=step, statement=statement, result=result))


LINEAR = [
    STEP,
    "def step(s, x):\n        new = s * keep + x\n        return new, new",
    "def step(s, x):\n        new = s + gain * (x - s)\n        return new, new",
    "def step(s, x):\n        new = (s - x) / gain\n        return new, new",
    "def step(s, x):\n        a, b = x\n        s = jnp.exp(a) * s + b\n        return s, s",
    "step = lambda s, x: (0.9 * s + x, 0.9 * s + x)",
    (
        'def step(s, x):\n        """One day."""\n        decay = 1 - keep\n'
        "        s = s - decay * s + x\n        return s, s"
    ),
]


@pytest.mark.parametrize("step", LINEAR)
def test_linear_recurrences(step):
    assert list(scan(step)) == ["linear_scan_rewritten"]


def test_the_statements_in_parallel():
    words = scan()["linear_scan_rewritten"].words
    assert words["lines"].split("; ") == [
        "first = jnp.asarray(jnp.zeros_like(keep))",
        (
            "factors, terms = jax.vmap(lambda x: jnp.broadcast_arrays(first, keep, gain * x)[1:])"
            "(rain)"
        ),
        "terms = terms.at[0].add(factors[0] * first)",
        "join = lambda one, two: (two[0] * one[0], two[0] * one[1] + two[1])",
        "_, levels = jax.lax.associative_scan(join, (factors, terms))",
    ]
    last = scan(statement="end, levels = lax.scan(step, start, xs=rain)")
    assert last["linear_scan_rewritten"].words["lines"].endswith("; end = levels[-1]")


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        ({"statement": "levels = jax.lax.scan(step, start, rain)[1]"}, "linear_scan"),
        ({"statement": "_, levels = lax.scan(step, start, rain, reverse=True)"}, "linear_scan"),
        ({"step": "def step(s, x):\n        s = jnp.tanh(s) + x\n        return s, s"},
         "scan_of_small_steps"),
        ({"step": "def step(s, x):\n        s = s * s + x\n        return s, s"},
         "scan_of_small_steps"),
        ({"step": "def step(s, x):\n        s = jnp.maximum(s + x, 0)\n        return s, s"},
         "scan_of_small_steps"),
        ({"step": "def step(s, x):\n        s = jnp.tanh(s @ keep + x)\n        return s, s * 2"},
         "scan_of_small_steps"),
        ({"step": "def step(c, x):\n        a, b = c\n        return (a + x, b), a"},
         "scan_of_small_steps"),
        ({"step": "def step(i, s):\n        return s.at[i].set(s[i - 1] * keep)",
          "statement": "levels = lax.fori_loop(1, SPAN, step, rain)"}, "loop_of_small_steps"),
        ({"step": "def step(s):\n        return s / 2",
          "statement": "levels = lax.while_loop(lambda s: s > 1, step, rain)"},
         "loop_of_small_steps"),
        ({"step": "def one(x):\n        return x.sum()",
          "statement": "levels = jax.lax.map(one, rain)"}, "mapped_in_turn"),
    ],
)  # fmt: skip
def test_other_small_steps(facts, name):
    assert list(scan(**facts)) == [name]


@pytest.mark.parametrize(
    "facts",
    [
        {"statement": "_, levels = jax.lax.scan(step, start, rain, unroll=8)"},
        {"statement": "_, levels = jax.lax.scan(step, start, None, length=8)"},
        {"statement": "_, levels = jax.lax.scan(step, start, jnp.arange(16))"},
        {"statement": "keys = jax.random.split(start, 8)\n    _, levels = lax.scan(step, 0, keys)"},
        {"statement": "levels = jax.lax.associative_scan(step, rain)"},
        {"step": "def step(c, k):\n        g = jax.grad(keep)(c)\n        return c - g, g"},
        {"step": "def step(c, k):\n        u, s = opt.update(k, c)\n        return u, s"},
        {"step": "def step(c, k):\n        return train_step(c, k), None"},
        {"statement": "_, levels = jax.lax.scan(gain, start, rain)"},
        {"statement": "levels = jax.lax.map(gain, rain, batch_size=64)"},
        {"statement": "_, levels = jax.lax.scan(step, start, rain, **options)"},
    ],
)
def test_other_loops(facts):
    assert scan(**facts) == {}


# ---- loops of PyTorch ----

CELL = """
import torch
import torch.nn as nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.wx, self.wh = nn.Linear(8, 64), nn.Linear(64, 64)
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(9))
    def forward(self, x, h, n):
        outs = []
        {loop}
            {body}
            outs.append(h)
        return torch.stack(outs)
"""
STEPS = "for t in range(x.shape[1]):"
RNN = "h = torch.tanh(self.wx(x[:, t]) + self.wh(h))"


def steps(body=RNN, loop=STEPS):
    return calls(CELL.format(loop=loop, body=body))


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"loop": "for t in range(n):"},
        {"loop": "for t in range(1, 500):"},
        {"loop": "for t, in x.unbind(1):", "body": "h = torch.tanh(self.wx(t) + self.wh(h))"},
        {"body": "h = h + 0.1 * torch.sin(self.wh(h))"},
        {"body": "a = torch.sigmoid(self.wx(x[:, t]))\n            h = a * h + (1 - a) * x[:, t]"},
        {"body": "h = x[:, t] @ h / h.norm()"},
        {"body": "h = 0.9 * h + torch.relu(self.wx(x[:, t]))"},
    ],
)
def test_steps_that_depend_on_each_other(facts):
    (found,) = steps(**facts).values()
    assert (found.name, found.words["state"]) == ("dependent_steps", "h")
    assert found.at.text.startswith("for t")


@pytest.mark.parametrize(
    "facts",
    [
        {"body": "y = torch.tanh(self.wx(x[:, t]) + self.wh(x[:, t]))"},
        {"body": "h = h + torch.tanh(self.wx(x[:, t])).sum()"},
        {"body": "h = torch.cat([h, torch.tanh(self.wx(x[:, t]))])"},
        {"loop": "for t in range(4):"},
        {"loop": "for t in self.layers:", "body": "h = torch.tanh(t(h) + h)"},
        {"loop": "for t in loader:"},
        {"body": "h = torch.relu(self.layers[t](h)) + h"},
        {"body": f"{RNN}\n            h.sum().backward()"},
        {"body": f"{RNN}\n            print(h.sum().item())"},
        {"body": f"{RNN}\n            opt.step()"},
        {"body": "n = n * 0.9; y = torch.tanh(self.wx(x[:, t]))"},
        {"body": "n = n + 1; y = torch.tanh(self.wx(x[:, t]))"},
        {"body": "h = self.fit(h, x, torch.zeros(3))"},
    ],
)
def test_other_steps(facts):
    source = CELL.format(**{"loop": STEPS, "body": RNN, **facts})
    source += "    def fit(self, h, x, y):\n        self.wx(x).sum().backward()\n        return h\n"
    assert calls(source) == {}


# ---- Fourier transforms ----

FFT = """
import numpy as np
import {module}
SAMPLES, CHIRP = 180000, 6008
def correlate(block, chirp):
    n = {length}
    spectrum = {fft}.rfft(block, {given}) * {fft}.rfft(chirp, n)
    return {back}
"""


def lengths(
    fft="cp.fft",
    module="cupy as cp",
    length="SAMPLES + CHIRP - 1",
    given="n, axis=1",
    back="{fft}.irfft(spectrum, n, axis=1)[:, :SAMPLES]",
    on_stacks=(),
):
    back = back.format(fft=fft)
    return calls(FFT.format(**locals()), *on_stacks)


def test_a_prime_length():
    (found,) = lengths().values()
    assert found.name == "slow_length_on_gpu"
    assert found.words["kind"] == "is a prime number"
    assert found.words["new"] == "n = next_fast_len(SAMPLES + CHIRP - 1, True)"
    assert found.words["import"] == "from cupyx.scipy.fft import next_fast_len"
    assert found.words["length"] == "186007"
    assert found.at.text == "cp.fft.rfft(block, n, axis=1)"


@pytest.mark.parametrize(
    "facts",
    [
        {"fft": "torch.fft", "module": "torch"},
        {"fft": "jnp.fft", "module": "jax.numpy as jnp"},
        {"fft": "xf", "module": "cupyx.scipy.fft as xf"},
        {"length": "2 * 9941"},
        {"given": "n=n"},
        {"back": "{fft}.irfft(spectrum, n)[..., :SAMPLES]"},
        {"back": "{fft}.irfft(spectrum, n=n).real[:SAMPLES]"},
    ],
)
def test_other_slow_lengths(facts):
    assert list(lengths(**facts)) == ["slow_length_on_gpu"]


@pytest.mark.parametrize(
    "facts",
    [
        {"length": "187500"},
        {"length": "1 << 18"},
        {"length": "SAMPLES + CHIRP"},  # 2 · 2 · 2 · 67 · 347 has a large factor: see below
        {"length": "len(block) + CHIRP - 1"},
        {"length": "next_fast_len(SAMPLES + CHIRP - 1)"},
        {"back": "{fft}.irfft(spectrum, n)"},
        {"back": "{fft}.irfft(spectrum, n)[-SAMPLES:]"},
        {"back": "{fft}.irfft(spectrum, n)[:-SAMPLES]"},
        {"back": "spectrum[:SAMPLES]"},
        {"given": "axis=1", "back": "{fft}.irfft(spectrum)[:SAMPLES]"},
    ],
)
def test_other_lengths(facts):
    if facts.get("length") == "SAMPLES + CHIRP":
        assert list(lengths(**facts)) == ["slow_length_on_gpu"]
        return
    assert lengths(**facts) == {}


def test_on_the_cpu_the_line_must_be_on_a_stack():
    numpy = {"fft": "np.fft", "module": "scipy.fft"}
    assert lengths(**numpy) == {}
    (found,) = lengths(**numpy, on_stacks=["spectrum = np.fft.rfft(block"]).values()
    assert (found.name, len(found.lines)) == ("slow_length", 1)
    assert found.words["import"] == "from scipy.fft import next_fast_len"
    torch = {"fft": "torch.fft", "module": "torch"}
    both = lengths(**torch, on_stacks=["spectrum = torch.fft.rfft(block"])
    assert set(both) == {"slow_length_on_gpu", "slow_length_on_cpu"}


@pytest.mark.parametrize(
    ("number", "factor"), [(186007, 186007), (2 * 9941, 9941), (128, 2), (127 * 4, 127), (1, 1)]
)
def test_factors(number, factor):
    assert largest_factor(number) == factor


# ---- kernels of Numba ----

KERNEL = """
import numpy as np
from numba import cuda
@cuda.jit
def add(height, hours, angle):
    i = cuda.grid(1)
    hours[i] += height[i] * angle
def main(angles, grid, block):
    height = cuda.to_device(np.ones(9999))
    {made}
    for angle in angles:
        {body}
    return hours.mean()
"""
LAUNCH = "add[grid, block](height, hours, angle)"


def launches(made="hours = np.zeros(9999, np.float32)", body=LAUNCH):
    return calls(KERNEL.format(made=made, body=body), "add[grid, block](")


def test_arrays_of_the_host():
    (found,) = launches().values()
    assert found.name == "host_arrays_launched"
    assert found.words["before"] == "d_hours = cuda.to_device(hours)"
    assert found.words["new"] == "add[grid, block](height, d_hours, angle)"
    assert found.words["after"] == "d_hours.copy_to_host(hours)"
    assert [one.line for one in found.lines] == [found.at.line]


@pytest.mark.parametrize(
    "made",
    ["hours = np.ones(9).astype(np.float32)", "hours = np.load('hours.npy')",
     "hours = np.random.rand(9999)"],
)  # fmt: skip
def test_other_arrays_of_the_host(made):
    assert list(launches(made)) == ["host_arrays_launched"]


@pytest.mark.parametrize(
    ("made", "body"),
    [
        ("hours = cuda.to_device(np.zeros(9999))", LAUNCH),
        ("hours = cuda.device_array(9999)", LAUNCH),
        ("hours = cuda.managed_array(9999)", LAUNCH),
        ("hours = load()", LAUNCH),
        ("hours = np.zeros(9)", f"hours[:] = 0\n        {LAUNCH}"),
        ("hours = np.zeros(9)", f"{LAUNCH}\n        print(hours.mean())"),
        ("hours = np.zeros(9)", f"hours = np.zeros(9)\n        {LAUNCH}"),
        ("hours = np.zeros(9); other = cuda.jit(print)", "other(hours)"),
        ("hours = np.float32(0)", LAUNCH),
    ],
)
def test_other_launches(made, body):
    source = KERNEL.format(made=made, body=body)
    assert calls(source) == {}


def test_a_launch_without_a_loop():
    source = KERNEL.replace("for angle in angles:", "if angles:")
    assert calls(source.format(made="hours = np.zeros(9)", body=LAUNCH)) == {}


# ---- arrays that are copied again ----

COPIES = """
import cupy as cp
import jax
def main(table, parts):
    found = []
    for part in parts:
        {first}
        other = {copy}
        found.append((other * part).sum())
    return found
"""


@pytest.mark.parametrize(
    "copy", ["cp.asarray(table)", "cp.array(table, dtype=cp.float32)", "jax.device_put(table)"]
)
def test_the_same_array_is_copied_again(copy):
    stack, purity = stack_of(COPIES.format(first="pass", copy=copy), copy)
    assert find_repeated(stack, purity)
    stack, purity = stack_of(COPIES.format(first="table[0] = part", copy=copy), copy)
    assert not find_repeated(stack, purity)


@pytest.mark.parametrize("copy", ["cp.asarray(part)", "cp.random.rand(9)", "cp.cuda.Stream()"])
def test_other_copies(copy):
    assert not find_repeated(*stack_of(COPIES.format(first="pass", copy=copy), copy))
