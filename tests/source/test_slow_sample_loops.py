"""Python loops over the samples of a batch on a GPU, and loops that look like them."""

from __future__ import annotations

import re
import textwrap

import pytest

from source.stacks import HEAD
from source.test_slow_calls import found

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
