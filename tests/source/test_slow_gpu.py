"""Lines that leave a GPU idle although it could do their work, and programs that look like them."""

from __future__ import annotations

import re
import textwrap

import pytest

from source.stacks import HEAD
from source.test_slow_calls import found

# ---- loops over the samples of a batch ----

LOOP = """
import torch.nn.functional as F
def augment(images, shift, rng):
    done = []
    {loop}
        {body}
        done.append({item})
    return {result}
def main(model, loader, rng, device):
    for batch, shift in loader:
        {move}
        loss = model(augment(images, shift, rng)).mean()
        loss.backward()
"""
MOVE = "images = batch.to(device, non_blocking=True)"
ITEM, EACH = "for image in images:", "torch.roll(image, 2)"


def loop(loop=ITEM, body="pass", item=EACH, result="torch.stack(done)", move=MOVE, active=""):
    source = LOOP.format(loop=loop, body=body, item=item, result=result, move=move)
    call = "model(augment(images, shift, rng)).mean()"
    stack = "augment(images, shift, rng)", active or item
    assert call in source
    return found(source, *stack)


@pytest.mark.parametrize(
    ("line", "body", "item"),
    [
        (ITEM, "pass", EACH),
        (ITEM, "image = image * rng.uniform(0.8, 1.2)", EACH),
        ("for i in range(len(images)):", "pass", "torch.rot90(images[i], int(shift[i]), (1, 2))"),
        ("for i in range(images.shape[0]):", "pass", "torch.linalg.inv(images[i])"),
        ("for i in range(images.size(0)):", "pass", "torch.linalg.inv(images[i:i + 1])"),
        ("for image, k in zip(images, shift):", "pass", "torch.roll(image, k)"),
        ("for i, image in enumerate(images):", "pass", "torch.roll(image, shift[i])"),
        ("for one in images.unbind(0):", "pass", "torch.roll(one, 2)"),
        (ITEM, "if rng.random() < 0.5: image = image.flip(2)", EACH),
        (ITEM, "theta = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], device=image.device)",
         "F.grid_sample(image[None], F.affine_grid(theta[None], (1, 3, 8, 8)))"),
    ],
)  # fmt: skip
def test_samples_one_by_one(line, body, item):
    words = loop(line, body, item)["loop_over_samples"]
    assert words["batch"].startswith("images")


@pytest.mark.parametrize(
    ("line", "body", "item"),
    [
        # Each iteration needs the one before.
        (ITEM, "state = torch.tanh(state + image)", "state"),
        # Layers, scales and parts are few, and large.
        ("for layer in model.children():", "images = layer(images)", "torch.relu(images)"),
        ("for scale in (0.5, 1.0, 2.0):", "pass",
         "torch.nn.functional.interpolate(images, scale_factor=scale)"),
        ("for part in images.chunk(4):", "pass", "torch.fft.rfft2(part)"),
        ("for part in images.split(1024):", "pass", "torch.fft.rfft2(part)"),
        ("for i in range(0, len(images), 256):", "pass", "torch.fft.rfft2(images[i:i + 256])"),
        ("for i in range(3):", "pass", "torch.fft.rfft2(images[i])"),
        # Lists, and tuples of arrays.
        ("for i, (image, label) in enumerate(images):", "pass", "torch.full_like(image, i)"),
        (ITEM, "a, b = image", "torch.roll(a, 2)"),
        (ITEM, "pass", "torch.stack(image)"),
        # Results of different sizes.
        ("for i in range(len(images)):", "pass",
         "images[i].unsqueeze(0).expand(len(shift[i]), -1).relu()"),
        (ITEM, "pass", "image[image > 0]"),
        (ITEM, "image = torch.nonzero(image)", EACH),
        (ITEM, "image = torch.unique(image)", EACH),
        (ITEM, "image = torchvision.ops.nms(image, rng, 0.5)", EACH),
        # Not only operations on arrays.
        (ITEM, "torchvision.utils.save_image(image, 'x.png')", EACH),
        (ITEM, "image = registry.lookup(image)", EACH),
        (ITEM, "if image.max() > 9: break", EACH),
        (ITEM, "image.mean().backward()", EACH),
        (ITEM, "image = scipy.ndimage.rotate(image, 3)", EACH),
        # Parts of different sizes.
        ("for i in range(len(images)):", "pass", "torch.relu(images[i, : shift[i]])"),
        ("for i in range(len(images)):", "pass", "torch.relu(images[i][shift[i]])"),
    ],
)  # fmt: skip
def test_other_loops(line, body, item):
    assert "loop_over_samples" not in loop(line, body, item)


@pytest.mark.parametrize(
    ("move", "result"),
    [
        ("images = batch", "torch.stack(done)"),  # perhaps in host memory
        ("images = torch.from_numpy(batch)", "torch.stack(done)"),
        ("images = batch.to('cpu')", "torch.stack(done)"),
        ("images = list(batch)", "torch.stack(done)"),
        (MOVE, "done"),  # perhaps of different sizes
        (MOVE, "torch.cat(done)"),
        ("parts_list = batch.to(device); images = parts_list", "torch.stack(done)"),
        ("images = batch.to(device).chunk(9)[1:]", "torch.stack(done)"),
        (MOVE, "pad_sequence(done)"),
    ],
)
def test_samples_in_host_memory_or_of_different_sizes(move, result):
    assert "loop_over_samples" not in loop(move=move, result=result)


def test_a_comprehension():
    source = """
    def turn(x, angle):
        return torch.rot90(x, angle, (1, 2))
    def main(net, data, angles):
        data = data.cuda()
        for step in range(100):
            y = torch.stack([turn(one, 1) for one in data])
    """
    assert list(found(source, "turn(one, 1)", "torch.rot90(x, angle, (1, 2))")) == [
        "loop_over_samples"
    ]


def stepped(body, after="return total", before="total = torch.zeros(len(x), device=x.device)"):
    source = f"""
    import cupy as cp
    import jax, jax.numpy as jnp
    from torchvision import transforms as T
    jitter = T.Compose([T.RandomRotation(9)])
    @torch.no_grad()
    def step(x, y):
        {before}
        {body}
        {after}
    def main(data, y):
        x = data.cuda()
        for i in range(100):
            step(x, y)
    """
    return source, "step(x, y)"


@pytest.mark.parametrize(
    ("body", "active", "before", "after"),
    [
        ("for i in range(len(x)): total[i] = torch.linalg.det(x[i])", "torch.linalg.det(x[i])",
         "total = torch.zeros(len(x), device=x.device)", "return total"),
        ("for i in range(len(x)): total += nn.functional.mse_loss(x[i], y[i])",
         "nn.functional.mse_loss(x[i], y[i])", "total = 0", "return total"),
        ("for i in range(len(x)): total = total + nn.functional.mse_loss(x[i], y[i])",
         "nn.functional.mse_loss(x[i], y[i])", "total = 0", "return total"),
        ("x = torch.stack([jitter(one) for one in x])", "jitter(one)", "pass", "return x"),
        ("for i in range(len(y)): z.append(jnp.fliplr(y[i]))", "jnp.fliplr(y[i])", "z = []",
         "return jnp.stack(z)"),
        ("for one in y: z.append(jnp.fliplr(one))", "jnp.fliplr(one)", "z = []",
         "return jnp.stack(z)"),
        ("z = cp.stack([cp.linalg.inv(one) for one in y])", "cp.linalg.inv(one)", "pass",
         "return z"),
    ],
)  # fmt: skip
def test_other_ways_to_join(body, active, before, after):
    source, call = stepped(body, after, before)
    names = ["loop_over_samples"] if "y[i]))" not in body or "jnp" not in body else []
    assert list(found(source, call, active)) == names


@pytest.mark.parametrize(
    ("body", "active"),
    [
        ("for i in range(len(x)): total = torch.tanh(total + x[i])", "torch.tanh(total + x[i])"),
        ("for i in range(len(x)): total += torch.tanh(total + x[i])", "torch.tanh(total + x[i])"),
        ("for i in range(len(x)): total[y[i]] = torch.tanh(x[i])", "torch.tanh(x[i])"),
        ("for i in range(len(x)): total[i] = self.head(torch.tanh(x[i]))", "torch.tanh(x[i])"),
        ("for i in range(0, len(x), 64): total[i] = torch.tanh(x[i : i + 64])",
         "torch.tanh(x[i : i + 64])"),
    ],
)  # fmt: skip
def test_loops_that_need_each_iteration(body, active):
    source, call = stepped(body)
    assert "loop_over_samples" not in found(source, call, active)


def test_a_loop_that_jax_compiles():
    source, call = stepped("for one in y: z.append(jnp.fliplr(one))", "return jnp.stack(z)", "z=[]")
    assert found(source.replace("@torch.no_grad()", "@jax.jit"), call, "jnp.fliplr(one)") == {}
    tracing = "lib:jax/_src/interpreters/partial_eval.py:trace_to_jaxpr"
    assert found(source, call, tracing, "jnp.fliplr(one)") == {}


def test_in_a_step_of_lightning():
    source = """
    class Net(L.LightningModule):
        def training_step(self, batch, index):
            x, y = batch
            parts = []
            for one in x:
                parts.append(torch.roll(one, 3))
            return self.loss(torch.stack(parts), y)
    """
    trainer = "lib:lightning/pytorch/trainer/call.py:_call_strategy_hook"
    assert list(found(source, trainer, "torch.roll(one, 3)")) == ["loop_over_samples"]
    loader = "lib:torch/utils/data/_utils/fetch.py:_MapDatasetFetcher.fetch"
    assert found(source, trainer, loader, "torch.roll(one, 3)") == {}


TURN = """
import math
import torch.nn.functional as F
def turn(x, rng):
    turned = []
    for crop in x:
        angle = rng.uniform(-math.pi, math.pi)
        c, s = math.cos(angle), math.sin(angle)
        theta = torch.tensor([[[c, -s, 0.0], [s, c, 0.0]]], device=x.device)
        grid = F.affine_grid(theta, (1, 3, 9, 9), align_corners=False)
        turned.append(F.grid_sample(crop[None], grid, padding_mode="reflection"))
    return torch.cat(turned)
def main(data):
    rng = np.random.default_rng(3)
    data = torch.from_numpy(data).cuda()
    for step in range(9):
        turn(data, rng)
"""
VARY = """
def vary(images, shift, flip, light):
    varied = []
    for image, (dy, dx), mirrored, gain in zip(images, shift, flip, light):
        image = torch.roll(image, (dy, dx), dims=(1, 2))
        if mirrored:
            image = image.flip(2)
        varied.append(image * gain)
    return torch.stack(varied)
def main(data, shift, flip, light):
    for step in range(9):
        vary(data.cuda(), shift, flip, light)
"""


def written(source, *active):
    """Return a program in which the lines of the advice are written instead of its own."""
    advice = found(source, *active)["loop_over_samples"]["advice"]
    _, head, code = re.split(r" Instead of | write: ", advice)
    first, last = (int(word) for word in head.split() if word.isdigit())
    lines = (HEAD + textwrap.dedent(source)).split("\n")
    new = [f"    {one}" for one in code.rstrip(".").strip("`").split("`; `")]
    return "\n".join([*lines[: first - 1], *new, *lines[last:]])


def test_the_code_for_turned_images():
    code = written(
        TURN, "turn(data, rng)", "F.affine_grid(theta, (1, 3, 9, 9), align_corners=False)"
    )
    assert "    angle = rng.uniform(-math.pi, math.pi, len(x))\n" in code
    assert "    c, s = (np.cos(angle), np.sin(angle))\n" not in code
    assert "    c, s = np.cos(angle), np.sin(angle)\n" in code
    assert "    grid = F.affine_grid(theta, x.shape, align_corners=False)\n" in code
    assert "    return F.grid_sample(x, grid, padding_mode='reflection')\n" in code


def test_the_code_gives_the_same_results():
    torch, np = pytest.importorskip("torch"), pytest.importorskip("numpy")
    images = torch.rand(7, 3, 9, 9)
    shift = torch.randint(-4, 5, (7, 2)).tolist()
    flip = (torch.rand(7) < 0.5).tolist()
    light = torch.rand(7).tolist()
    new = written(VARY, "vary(data.cuda(), shift, flip, light)", "image * gain")
    given = images, shift, flip, light
    before, after = (_defined(one, "vary")(*given) for one in (textwrap.dedent(VARY), new))
    assert torch.equal(before, after)

    active = "F.affine_grid(theta, (1, 3, 9, 9), align_corners=False)"
    new = written(TURN, "turn(data, rng)", active)
    turns = (_defined(one, "turn") for one in (textwrap.dedent(TURN), new))
    before, after = (turn(images, np.random.default_rng(3)) for turn in turns)
    assert torch.allclose(before, after, atol=1e-5)


def _defined(source, name):
    import math

    import numpy as np
    import torch

    begin = source.index(f"def {name}(")
    space = {"torch": torch, "np": np, "math": math, "F": torch.nn.functional}
    exec(source[begin : source.index("def main(")], space)
    return space[name]


# ---- batches that the CPU converts ----

PREPARE = """
def prepare(crops, device):
    {lines}
    return {end}
def main(net, crops, device):
    for step in range(99):
        net(prepare(crops[step], device)).mean().backward()
"""
CAST = "x = crops.astype(np.float32) / 255.0"
SENT = "torch.from_numpy(x).to(device)"


def prepared(active, lines=CAST, end=SENT):
    return found(PREPARE.format(lines=lines, end=end), "prepare(crops[step], device)", active)


@pytest.mark.parametrize(
    ("lines", "end", "active"),
    [
        (CAST, SENT, "crops.astype(np.float32)"),
        (CAST, SENT, SENT),
        (CAST, "torch.as_tensor(x).cuda(non_blocking=True)", CAST.removeprefix("x = ")),
        (f"{CAST}\n    x = (x - MEAN) / STD", SENT, "(x - MEAN) / STD"),
        ("pass", "torch.from_numpy(crops.astype('float32') / 255).to(device)",
         "crops.astype('float32') / 255"),
        ("x = crops.astype(np.float32) / 127.5 - 1.0", SENT, "crops.astype(np.float32) / 127.5"),
        ("x = torch.from_numpy(crops).float() / 255", "x.to(device)", "x.to(device)"),
        ("x = torch.from_numpy(crops).float().div(255)", "x.to(device)",
         "torch.from_numpy(crops).float()"),
        ("x = crops.float() / 255.0\n    x = x.to(device)", "x", "crops.float()"),
        ("x = crops.astype('float32')\n    x /= 255.0", SENT, "crops.astype('float32')"),
        (CAST, "torch.tensor(x, device=device)", "crops.astype(np.float32)"),
        ("x = torch.tensor(crops, dtype=torch.float32) / 255", "x.to(device)",
         "torch.tensor(crops, dtype=torch.float32)"),
        ("pass", "(crops.to(torch.float32) / 255.0).to(device, non_blocking=True)",
         "crops.to(torch.float32)"),
    ],
)  # fmt: skip
def test_bytes_that_are_converted_before_the_copy(lines, end, active):
    assert "converted_before_copy" in prepared(active, lines, end)


@pytest.mark.parametrize(
    ("lines", "end", "active"),
    [
        ("x = crops.astype(np.float32)", SENT, "crops.astype(np.float32)"),  # perhaps no bytes
        ("x = crops / 255.0", SENT, "crops / 255.0"),
        (CAST, "torch.from_numpy(x)", "crops.astype(np.float32)"),  # perhaps for the CPU
        (CAST, "torch.from_numpy(x).to('cpu')", "crops.astype(np.float32)"),
        ("x = resize(crops.astype(np.float32) / 255.0)", SENT, "crops.astype(np.float32)"),
        ("x = crops.astype(np.float64) / 255.0", SENT, "crops.astype(np.float64)"),
        ("x = np.log(crops.astype(np.float32) / 255.0)", SENT, "crops.astype(np.float32)"),
        ("x = torch.from_numpy(crops).to(device).float() / 255.0", "x", "torch.from_numpy(crops)"),
        ("x = crops.to(device).float() / 255.0", "x", "crops.to(device)"),
        ("x = crops.to(device)\n    x = (x.float() / 255).to(device)", "x", "x.float()"),
        ("x = crops.float()", "x.to(device)", "crops.float()"),
    ],
)
def test_other_preparations(lines, end, active):
    assert "converted_before_copy" not in prepared(active, lines, end)


def test_what_a_worker_converts_beside_the_gpu():
    source = PREPARE.format(lines=CAST, end=SENT)
    worker = "lib:torch/utils/data/_utils/worker.py:_worker_loop"
    assert found(source, worker, "crops.astype(np.float32)") == {}


def test_the_code_of_a_conversion():
    words = prepared(SENT, f"{CAST}\n    x = (x - MEAN) / STD")["converted_before_copy"]
    assert words["code"] == (
        "`x = torch.from_numpy(crops).to(device).float() / 255.0`; "
        "`x = (x - MEAN_ON_GPU) / STD_ON_GPU`; `return x`"
    )
    assert (
        "after `MEAN` and `STD`: `MEAN_ON_GPU = torch.as_tensor(MEAN, device=device)`"
        in (words["before"])
    )


# ---- functions of the CPU with arrays of the GPU ----

HOST = """
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import cosine_similarity
import cupy as cp, cupy
import scipy
def score(vectors, known, labels):
    {first}
    return {result}
def main(net, x, known, labels):
    for step in range(99):
        score(net(x), known, labels)
"""


def on_host(result, first="a, b = vectors.cpu().numpy(), known.cpu().numpy()", call=""):
    first = "; ".join(first.split("\n"))
    source = HOST.format(first=first, result=result)
    return found(source, "score(net(x), known, labels)", call or result)


TWO = "a = vectors.detach().cpu().numpy()\nb = known.cpu().numpy()"


@pytest.mark.parametrize(
    ("first", "result", "call", "new"),
    [
        (TWO, "cdist(a, b).argmin(1)", "cdist(a, b)", "torch.cdist(a, b).argmin(1).cpu().numpy()"),
        (TWO, "cdist(a, a)", "", "torch.cdist(a, a).cpu().numpy()"),
        ("pass", "cdist(vectors.cpu(), known.cpu())", "",
         "torch.cdist(vectors, known).cpu().numpy()"),
        (TWO, "np.argsort(a, axis=1)", "", "torch.argsort(a, 1).cpu().numpy()"),
        (TWO, "np.argmax(a, -1)", "", "torch.argmax(a, -1).cpu().numpy()"),
        (TWO, "np.linalg.svd(a)", "", "tuple(one.cpu().numpy() for one in torch.linalg.svd(a))"),
        (TWO, "np.matmul(a, b)", "", "(a @ b).cpu().numpy()"),
        ("a = vectors.to('cpu').numpy()", "np.linalg.inv(a)", "",
         "torch.linalg.inv(a).cpu().numpy()"),
        (TWO, "(a @ b.T).argmax(1)", "a @ b.T", "(a @ b.T).argmax(1).cpu().numpy()"),
        (TWO, "np.argsort(-a, axis=1)", "", "torch.argsort(-a, 1).cpu().numpy()"),
        ("a = cp.asnumpy(vectors)", "np.linalg.svd(a)", "",
         "tuple(one.get() for one in cp.linalg.svd(a))"),
        ("a = vectors.get()", "np.fft.fft(a)", "", "cp.fft.fft(a).get()"),
    ],
)  # fmt: skip
def test_functions_that_the_gpu_has_too(first, result, call, new):
    assert on_host(result, first, call)["computed_on_host"]["new"] == new


@pytest.mark.parametrize(
    ("first", "result", "call"),
    [
        ("a, b = vectors, known", "cdist(a, b)", ""),  # arrays of NumPy
        ("a = vectors.cpu().numpy()", "cdist(a, known)", ""),
        (TWO, "cdist(a, b, 'jaccard')", ""),
        (TWO, "cdist(a, b, metric='mahalanobis')", ""),
        ("a = np.load('a.npy')", "np.argsort(a)", ""),
        ("a = labels.get()", "labels.sort(a)", ""),
        ("a = vectors.cpu().numpy()", "a @ known", ""),
        ("a = vectors", "a @ a.T", ""),
        (TWO, "scipy.optimize.linear_sum_assignment(a)", ""),
        (TWO, "np.argsort(a, axis=1, kind='stable')", ""),
        (TWO, "np.cumsum(a)", ""),
        ("a = loss.item()", "np.sqrt(a)", ""),
    ],
)
def test_functions_without_arrays_of_the_gpu(first, result, call):
    assert on_host(result, first, call) == {}


COLLECTED = """
def first(net, x):
    return net(x).cpu().numpy()
def evaluate(net, loader, device):
    {before}
    for x, y in loader:
        {collect}
    {join}
    return {best}
def main(net, loader, device):
    for epoch in range(9):
        evaluate(net, loader, device)
"""


NUMPY = "parts.append(net(x.to(device)).cpu().numpy())"


def collected(best="np.argmax(scores, axis=1)", join="scores = np.concatenate(parts)",
              collect=NUMPY, call=""):  # fmt: skip
    source = COLLECTED.format(before="parts = []", collect=collect, join=join, best=best)
    return found(source, "evaluate(net, loader, device)", call or best)


def test_all_scores_for_an_argmax():
    words = collected()["collected_for_argmax"]
    assert words["new"] == "net(x.to(device)).argmax(1).cpu().numpy()"
    assert words["instead"] == "scores"


@pytest.mark.parametrize(
    ("best", "join", "call"),
    [
        ("np.argmax(scores, axis=1), scores", "scores = np.concatenate(parts)",
         "np.argmax(scores, axis=1)"),
        ("np.argmax(scores, axis=0)", "scores = np.concatenate(parts)", ""),
        ("np.argmax(scores)", "scores = np.concatenate(parts)", ""),
        ("np.cumsum(scores, axis=1)", "scores = np.concatenate(parts)", ""),
        ("np.argmax(-scores, axis=1)", "scores = np.concatenate(parts)", ""),
    ],
)  # fmt: skip
def test_scores_that_are_needed(best, join, call):
    assert collected(best, join, call=call) == {}


@pytest.mark.parametrize(
    ("best", "join", "collect", "new"),
    [
        ("np.argsort(scores, axis=1)", "scores = np.concatenate(parts)", NUMPY,
         "torch.argsort(torch.from_numpy(scores).cuda(), 1).cpu().numpy()"),
        ("scores @ scores.T", "scores = torch.cat(parts)", "parts.append(net(x).cpu())",
         "(scores.cuda() @ scores.T.cuda()).cpu().numpy()"),
        ("np.linalg.inv(scores)", "scores = first(net, x)", NUMPY,
         "torch.linalg.inv(torch.from_numpy(scores).cuda()).cpu().numpy()"),
    ],
)  # fmt: skip
def test_what_is_worth_a_copy_to_the_gpu(best, join, collect, new):
    words = collected(best, join, collect)["computed_on_host"]
    assert words["new"] == new
    assert words["before"] == ""


# ---- averages of weights ----

AVERAGE = """
class Average(L.Callback):
    def on_train_start(self, trainer, module):
        self.shadow = {{k: v.detach().cpu().clone() for k, v in module.state_dict().items()}}
    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        for name, value in {over}:
            {copy}
            {update}
"""
HOOK = "lib:lightning/pytorch/trainer/call.py:_call_callback_hooks"
COPY = "fresh = value.detach().cpu()"
UPDATE = "self.shadow[name] = self.d * self.shadow[name] + (1 - self.d) * fresh"


def average(update=UPDATE, copy=COPY, over="module.state_dict().items()", active=""):
    source = AVERAGE.format(over=over, copy=copy, update=update)
    return found(source, HOOK, active or copy.removeprefix("fresh = "))


@pytest.mark.parametrize(
    ("update", "copy", "active"),
    [
        (UPDATE, COPY, ""),
        (UPDATE, COPY, "self.d * self.shadow[name]"),
        ("self.shadow[name].lerp_(fresh, 1 - self.d)", COPY, ""),
        ("self.shadow[name].mul_(self.d).add_(fresh, alpha=1 - self.d)", COPY, ""),
        ("self.shadow[name].mul_(self.d).add_(value.cpu(), alpha=1 - self.d)", "pass",
         "value.cpu()"),
        ("self.shadow[name] += (1 - self.d) * fresh", COPY, ""),
    ],
)  # fmt: skip
def test_an_average_of_the_weights_in_host_memory(update, copy, active):
    words = average(update, copy, active=active)["weights_averaged_on_host"]
    assert words["average"] == "self.shadow"
    assert words["new"] in ("value.detach()", "value")
    assert "write `v.detach().clone()` instead of `v.detach().cpu()" in words["begins"]


@pytest.mark.parametrize(
    ("update", "copy", "over", "active"),
    [
        ("self.best[name] = fresh", COPY, "module.state_dict().items()", ""),  # a copy to save
        (UPDATE, "fresh = value.detach()", "module.state_dict().items()", ""),
        (UPDATE, COPY, "batch.items()", ""),
        ("self.shadow[name] = self.shadow[name] + fresh", COPY, "module.state_dict().items()", ""),
        (f"{UPDATE}; log(fresh)", COPY, "module.state_dict().items()", ""),
    ],
)
def test_other_copies_of_weights(update, copy, over, active):
    assert average(update, copy, over, active) == {}


def test_a_first_copy_without_clone():
    source = AVERAGE.format(over="module.state_dict().items()", copy=COPY, update=UPDATE)
    words = found(source.replace(".cpu().clone()", ".cpu()"), HOOK, "value.detach().cpu()")
    assert "write `v.detach().clone()` instead" in words["weights_averaged_on_host"]["begins"]


def test_an_average_in_another_model():
    source = """
    def update(ema, model, d):
        for e, p in zip(ema.parameters(), model.parameters()):
            e.mul_(d).add_(p.cpu(), alpha=1 - d)
    def main(ema, model):
        for step in range(99):
            update(ema, model, 0.99)
    """
    words = found(source, "update(ema, model, 0.99)", "p.cpu()")["weights_averaged_on_host"]
    assert words["begins"].startswith("Move `ema` to the GPU")


def test_an_average_once_after_the_training():
    source = """
    def main(module, shadow, d):
        for name, value in module.state_dict().items():
            shadow[name] = d * shadow[name] + (1 - d) * value.cpu()
    """
    assert found(source, "value.cpu()") == {}


# ---- logits of transformers' Trainer ----

METRICS = """
def restored(prediction):
    {logits}
    guess = {best}
    return {{"acc": float((guess == labels).mean())}}
def main(model, args, data):
    trainer = Trainer(model=model, args=args, eval_dataset=data, {options})
    trainer.train()
"""
NUMPIFY = "lib:transformers/trainer_pt_utils.py:nested_numpify"
PAIR, BEST = "logits, labels = prediction", "np.argmax(logits, axis=-1)"


def trained(logits=PAIR, best=BEST, options="compute_metrics=restored"):
    return found(METRICS.format(logits=logits, best=best, options=options), "trainer.train()",
                 NUMPIFY)  # fmt: skip


@pytest.mark.parametrize(
    ("logits", "best", "name"),
    [
        (PAIR, BEST, "logits"),
        (PAIR, "logits.argmax(-1)", "logits"),
        (PAIR, "logits.argmax(axis=-1)", "logits"),
        ("labels = prediction.label_ids", "prediction.predictions.argmax(-1)",
         "prediction.predictions"),
        ("logits, labels = prediction.predictions, prediction.label_ids", BEST, "logits"),
        ("labels, logits = 0, prediction.predictions\n    logits = prediction.predictions", BEST,
         "logits"),
    ],
)  # fmt: skip
def test_all_logits_for_an_argmax(logits, best, name):
    words = trained(logits, best)["trainer_collects_logits"]
    assert words["logits"] == name
    assert words["best"] == best


@pytest.mark.parametrize(
    ("logits", "best", "options"),
    [
        (PAIR, BEST, "compute_metrics=restored, preprocess_logits_for_metrics=likeliest"),
        (PAIR, BEST, "callbacks=[]"),
        (PAIR, BEST, "compute_metrics=restored, **more"),
        (PAIR, "softmax(logits).argmax(-1)", "compute_metrics=restored"),
        (PAIR, "np.argmax(logits, axis=0)", "compute_metrics=restored"),
        (PAIR, f"{BEST}; top = np.sort(logits)", "compute_metrics=restored"),
        (PAIR, "logits > 0", "compute_metrics=restored"),
    ],
)
def test_logits_that_are_needed(logits, best, options):
    assert trained(logits, best, options) == {}
