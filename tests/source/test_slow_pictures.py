"""Image files that each iteration of a loop decodes again."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

PIECES = """
import os
from PIL import Image
def main(folder, boxes, paths, out):
    for number in range(9):
        path = os.path.join(folder, "sheet_%d.png" % number)
        for k, box in enumerate(boxes):
            {opened}
            {use}
"""
OPEN = "sheet = Image.open(path)"
CROP = "piece = sheet.crop(box)"
LOAD = "lib:PIL/ImageFile.py:ImageFile.load"


def pieces(opened=OPEN, use=CROP, active="sheet.crop(box)"):
    return found(PIECES.format(opened=opened, use=use), active, LOAD)


def test_the_words():
    assert pieces() == {
        "picture_decoded_again": {
            "opened": "Image.open(path)",
            "path": "path",
            "open": "Image.open",
            "image": "sheet",
            "loop": "train.py:14",
        }
    }


@pytest.mark.parametrize(
    ("opened", "use", "active", "is_found"),
    [
        ("with Image.open(path) as sheet:", f"    {CROP}", "sheet.crop(box)", True),
        ("", "piece = Image.open(path).crop(box)", "Image.open(path).crop(box)", True),
        (OPEN, "a = np.asarray(sheet.crop(box))", "sheet.crop(box)", True),
        (OPEN, f"{CROP}; piece.save(out)", "sheet.crop(box)", True),
        # ---- which look like it ----
        # `work_repeated` finds this one.
        ("", "a = np.asarray(Image.open(path))[box]", "np.asarray(Image.open(path))", False),
        ("sheet = Image.open(paths[k])", CROP, "sheet.crop(box)", False),
        ("sheet = Image.open(box)", CROP, "sheet.crop(box)", False),
        (OPEN, f"sheet.thumbnail((64, 64)); {CROP}", "sheet.crop(box)", False),
        (OPEN, f"sheet.paste(out); {CROP}", "sheet.crop(box)", False),
        (OPEN, f"sheet.seek(k); {CROP}", "sheet.crop(box)", False),
        (OPEN, f"{CROP}; piece.save(path)", "sheet.crop(box)", False),  # it writes the file
        ("sheet = Image.open(path); sheet = sheet.rotate(k)", CROP, "sheet.crop(box)", False),
        ("sheet = np.load(path)", "piece = sheet.crop(box)", "sheet.crop(box)", False),
    ],
)
def test_loops(opened, use, active, is_found):
    assert list(pieces(opened, use, active)) == (["picture_decoded_again"] if is_found else [])


def test_only_once_for_each_file():
    source = """
from PIL import Image
def main(paths):
    for path in paths:
        with Image.open(path) as sheet:
            for box in paths:
                sheet.crop(box)
"""
    assert found(source, "sheet.crop(box)", LOAD) == {}


def test_a_function_that_opens_the_file():
    source = """
from PIL import Image
def piece(path, box):
    with Image.open(path) as sheet:
        return sheet.crop(box)
def main(path, boxes):
    return [piece(path, box) for box in boxes]
def others(paths):
    return [piece(path, (0, 0, 9, 9)) for path in paths]
"""
    words = found(source, "piece(path, box)", "sheet.crop(box)", LOAD)
    assert words["picture_decoded_by_calls"]["path"] == "path"
    assert found(source, "piece(path, (0, 0, 9, 9))", "sheet.crop(box)", LOAD) == {}
