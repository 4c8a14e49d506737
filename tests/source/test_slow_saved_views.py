"""Slices of tensors that are saved with the whole tensor, and programs that look like them."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

SOURCE = """
def make(n):
    bank = torch.randn(n, 64)
    return nn.functional.normalize(bank, dim=1)
def load(path):
    return torch.load(path)
def run(names, path, n):
    bank = {bank}
    for first in range(0, n, 4):
        part = {part}
        torch.save({saved}, path)
"""
SAVE = "torch.save({saved}, path)"


@pytest.mark.parametrize(
    ("bank", "part", "saved", "view"),
    [
        ("make(n)", "bank[first:first + 4]", '{"n": first, "rows": part}', "part"),
        ("torch.randn(n, 64)", "bank[first:first + 4]", "part", "part"),
        ("torch.zeros(n, 64).to('cpu')", "bank[:8]", "[part, first]", "part"),
        ("make(n) * 2", "bank[first:n, 3].detach()", "part", "part"),
        ("make(n)", "first", "bank[first:n]", "bank[first:n]"),
        # ---- which look like it ----
        ("make(n)", "bank[first:first + 4].clone()", "part", None),
        ("make(n)", "bank[first:first + 4] * 2", "part", None),
        ("make(n)", "bank[bank > first]", "part", None),
        ("make(n)", "bank[first:]", "part", None),
        ("make(n)", "bank[:]", "part", None),
        ("make(n)", "bank", "part", None),
        ("list(names)", "bank[first:first + 4]", "part", None),
        ("names", "bank[first:first + 4]", "part", None),
        ("np.zeros((n, 64))", "bank[first:first + 4]", "part", None),
        ("load(path)", "bank[first:first + 4]", "part", None),
        ("torch.load(path)", "bank[first:first + 4]", "part", None),
    ],
)
def test_slices(bank, part, saved, view):
    source = SOURCE.replace("{bank}", bank).replace("{part}", part).replace("{saved}", saved)
    words = found(source, SAVE.replace("{saved}", saved))
    given = words.get("saved_with_whole_tensor", {})
    assert given.get("view") == view
    assert not view or given["whole"] == "bank"


def test_one_file_after_all_work_is_not_reported():
    source = "def end(n, path):\n    bank = torch.randn(n, 9)\n    torch.save(bank[0:9], path)\n"
    assert found(source, "torch.save(bank[0:9], path)") == {}
