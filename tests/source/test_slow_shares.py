"""Data that each rank prepares as a whole, and programs that look like them."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

SOURCE = """
import torch.distributed as dist
from scipy import ndimage
def clean(images):
    out = np.empty_like(images)
    for i, image in enumerate(images):
        calm = ndimage.median_filter(image, size=5)
        out[i] = calm - ndimage.gaussian_filter(calm, 12)
    return torch.from_numpy(out).unsqueeze(1)
def listed(images):
    out = []
    for image in images:
        out.append(ndimage.median_filter(image, size=5))
    return np.stack(out)
def brief(images):
    return np.array([ndimage.median_filter(image, size=5) for image in images])
def scaled(images):
    out = [ndimage.median_filter(image, size=5) for image in images]
    return np.stack(out) / np.std(out)
def centred(images):
    mean = images.mean(0)
    return np.stack([ndimage.median_filter(image - mean, size=5) for image in images])
def running(images):
    out, last = [], 0.0
    for image in images:
        last = ndimage.median_filter(image + last, size=5)
        out.append(last)
    return np.stack(out)
def chosen(images):
    return [ndimage.median_filter(one, size=5) for one in images if one.max() > 3]
def main(images, size, place):
    rank, world = dist.get_rank(), dist.get_world_size()
    {code}
    print({used})
"""


@pytest.mark.parametrize(
    ("code", "used", "name"),
    [
        ("x = clean(images)[rank::world]", "x", "prepared_by_all_ranks"),
        ("x = listed(images)[rank::world]", "x", "prepared_by_all_ranks"),
        ("x = brief(images)[dist.get_rank()::dist.get_world_size()]", "x",
         "prepared_by_all_ranks"),
        ("x = clean(images)\n    x = x[rank::world]", "x", "prepared_by_all_ranks_before"),
        ("every = clean(images)\n    x = every[rank::world]", "x", "prepared_by_all_ranks_before"),
        # ---- which look like it ----
        ("x = clean(images)", "x", None),
        ("x = clean(images[rank::world])", "x", None),
        ("x = clean(images)[::2]", "x", None),
        ("x = clean(images)[place::size]", "x", None),
        ("every = clean(images)\n    x = every[rank::world]", "x, every.mean()", None),
        ("x = scaled(images)[rank::world]", "x", None),
        ("x = centred(images)[rank::world]", "x", None),
        ("x = running(images)[rank::world]", "x", None),
        ("x = chosen(images)[rank::world]", "x", None),
    ],
)  # fmt: skip
def test_shares(code, used, name):
    call = code.split("\n")[0].split(" = ")[1]
    call = call[: call.index(")") + 1]
    function = call[: call.index("(")]
    inner = {
        "clean": "ndimage.gaussian_filter(calm, 12)",
        "running": "ndimage.median_filter(image + last, size=5)",
        "centred": "ndimage.median_filter(image - mean, size=5)",
        "chosen": "ndimage.median_filter(one, size=5)",
    }
    rest = {
        "listed": "out.append(ndimage.median_filter(image, size=5))",
        "brief": "np.array([ndimage.median_filter(image, size=5) for image in images])",
    }
    active = inner.get(function) or rest.get(function) or "np.std(out)"
    words = found(SOURCE.format(code=code, used=used), call, active)
    assert list(words) == ([name] if name else [])
    if name and function == "clean":
        assert words[name]["new"] == "clean(images[rank::world])"
