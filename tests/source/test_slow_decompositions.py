"""Singular values and Jacobians of which a program uses only a part, and look-alikes."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

SINGULAR = """
class Limiter:
    def __init__(self, critic):
        self.weights = [m.weight for m in critic]
    def apply(self, layer):
        {loop}
            largest = {code}
            weight.div_(largest.clamp(min=1.0))
def train(limiter, critic, layer, optimizer):
    for step in range(70):
        loss = critic(step).mean()
        {backward}
        optimizer.step()
        limiter.apply(layer)
"""
LOOP = "for weight in self.weights:"


def singular(code, call="", loop=LOOP, backward="loss.backward()"):
    source = SINGULAR.format(code=code, loop=loop, backward=backward)
    return found(source, "limiter.apply(layer)", call or code)


@pytest.mark.parametrize(
    ("code", "call", "loop"),
    [
        ("torch.linalg.matrix_norm(weight, ord=2)", "", LOOP),
        ("torch.linalg.matrix_norm(weight, 2)", "", LOOP),
        ("torch.linalg.svdvals(weight)[0]", "torch.linalg.svdvals(weight)", LOOP),
        ("torch.linalg.svdvals(weight).max()", "torch.linalg.svdvals(weight)", LOOP),
        ("torch.linalg.svd(weight).S[0]", "torch.linalg.svd(weight)", LOOP),
        ("torch.linalg.matrix_norm(layer.weight, ord=2)", "", "if True:"),
        ("torch.linalg.matrix_norm(weight, ord=2)", "", "for weight in layer.parameters():"),
        ("torch.linalg.matrix_norm(weight, ord=2)", "",
         "for name, weight in layer.named_parameters():"),
    ],
)  # fmt: skip
def test_only_the_largest_singular_value(code, call, loop):
    assert list(singular(code, call, loop)) == ["largest_singular_value"]


@pytest.mark.parametrize(
    ("code", "call", "loop"),
    [
        ("torch.linalg.matrix_norm(weight)", "", LOOP),
        ("torch.linalg.matrix_norm(weight, ord='nuc')", "", LOOP),
        ("torch.linalg.matrix_norm(weight, ord=2, dim=(1, 2))", "", LOOP),
        ("torch.linalg.svdvals(weight).sum()", "torch.linalg.svdvals(weight)", LOOP),
        ("torch.linalg.svdvals(weight)[-1]", "torch.linalg.svdvals(weight)", LOOP),
        ("torch.linalg.norm(weight, 2)", "", LOOP),
        # Another matrix in each step.
        ("torch.linalg.matrix_norm(weight, ord=2)", "", "for weight in covariances(layer):"),
        ("torch.linalg.matrix_norm(weight.flatten(1), ord=2)", "", LOOP),
    ],
)
def test_other_decompositions(code, call, loop):
    assert singular(code, call, loop) == {}


def test_without_a_training_the_matrix_is_not_known_to_change_little():
    assert singular("torch.linalg.matrix_norm(weight, ord=2)", backward="pass") == {}


def test_the_code_for_singular_values():
    words = singular("torch.linalg.svdvals(weight)[0]", "torch.linalg.svdvals(weight)")
    words = words["largest_singular_value"]
    assert words["old"] == "torch.linalg.svdvals(weight)[0]"
    assert words["new"] == "torch.svd_lowrank(weight, q=1, niter=10)[1][0]"


JACOBIAN = """
def sensitivities(net, x, rows):
    {code}
    {more}
    return {used}
def main(net, parts):
    for part in parts:
        sensitivities(net, part, 3)
"""
WHOLE = "whole = torch.autograd.functional.jacobian(net, x)"
ROWS = "every = torch.arange(len(x))"
SUMMED = "torch.autograd.functional.jacobian(lambda batch: net(batch).sum(0), x)"


def jacobian(used, code=WHOLE, more=ROWS):
    source = JACOBIAN.format(code=code, more=more, used=used)
    call = code.removeprefix("whole = ")
    if code == "pass":
        call = used[: used.index("x)") + 2]
    return found(source, "sensitivities(net, part, 3)", call)


@pytest.mark.parametrize(
    ("used", "new"),
    [
        ("whole[every, :, every, :]", f"{SUMMED}.movedim(1, 0)"),
        ("whole[every, :, every].abs().sum(0)", f"{SUMMED}.movedim(1, 0)"),
        ("torch.diagonal(whole, dim1=0, dim2=2)", f"{SUMMED}.permute(0, 2, 1)"),
        ("whole.diagonal(dim1=0, dim2=2).sum()", f"{SUMMED}.permute(0, 2, 1)"),
        ("torch.einsum('bibj->bij', whole)", f"{SUMMED}.movedim(1, 0)"),
    ],
)
def test_only_the_blocks_of_each_sample(used, new):
    assert jacobian(used)["jacobian_of_all_pairs"]["new"] == new


def test_a_jacobian_without_a_name():
    used = "torch.func.jacrev(net)(x)[every, :, every, :]"
    assert jacobian(used, "pass")["jacobian_of_all_pairs_at_once"]["new"] == (
        "torch.func.jacrev(lambda batch: net(batch).sum(0))(x).movedim(1, 0)"
    )


@pytest.mark.parametrize(
    ("used", "code", "more"),
    [
        ("whole", WHOLE, ROWS),
        ("whole[every, :, every, :], whole.sum()", WHOLE, ROWS),
        ("whole[rows, :, rows, :]", WHOLE, ROWS),  # which rows?
        ("whole[every, :, every, :]", WHOLE, "every = torch.arange(0, len(x), 2)"),
        ("whole[every, every, :]", WHOLE, ROWS),
        ("whole.sum(2)", WHOLE, ROWS),
        ("torch.einsum('bicj->bij', whole)", WHOLE, ROWS),
        ("torch.diagonal(whole, dim1=1, dim2=3)", WHOLE, ROWS),
        ("whole[every, :, every, :]",
         "whole = torch.autograd.functional.jacobian(net, (x, rows))", ROWS),
        ("whole[every, :, every, :]",
         "whole = torch.autograd.functional.jacobian(lambda y: net(y).sum(0), x)", ROWS),
    ],
)  # fmt: skip
def test_other_jacobians(used, code, more):
    assert jacobian(used, code, more) == {}
