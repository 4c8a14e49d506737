"""Functions of the CPU with arrays of the GPU, and functions that look like them."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

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
