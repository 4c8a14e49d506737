"""Loops over all keys of a store for those with one prefix, and loops that look like them."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

STORE = """
import lmdb
def peptides(env, protein):
    prefix = b"P%05d/" % protein
    found = []
    with env.begin() as txn:
        for key, value in txn.cursor():
            if key.startswith(prefix):
                found.append(value)
    return found
"""
FOR = "        for key, value in txn.cursor()"
APPEND = "                found.append(value)"
PLACED = "        place = txn.cursor()\n        place.set_range(prefix)"
LOOP, TEST = "txn.cursor()", "key.startswith(prefix)"


def words_of(*changes, active=TEST):
    source = STORE
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in source
        source, active = source.replace(old, new), active.replace(old, new)
    return found(source, active).get("keys_scanned_for_prefix")


@pytest.mark.parametrize("active", [LOOP, TEST])
def test_the_words(active):
    assert words_of(active=active) == {
        "cursor": "cursor = txn.cursor()",
        "loop": "for key, value in cursor if cursor.set_range(prefix) else ():",
        "test": "if not key.startswith(prefix): break",
        "line": "15",
    }


@pytest.mark.parametrize(
    ("changes", "loop"),
    [
        (("        for key, value in txn.cursor()",
          "        all_keys = txn.cursor()\n        for key, value in all_keys"),
         "for key, value in cursor if cursor.set_range(prefix) else ():"),
        (("key, value in txn.cursor()", "key in txn.cursor().iternext(values=False)",
          "append(value)", "append(key)"),
         "for key in cursor.iternext(values=False) if cursor.set_range(prefix) else ():"),
        (("if key.startswith(prefix):\n                found",
          "if not key.startswith(prefix):\n                continue\n            found"),
         "for key, value in cursor if cursor.set_range(prefix) else ():"),
        # ---- which look like it ----
        (("import lmdb", "import other"), None),
        (("key.startswith(prefix)", "key.endswith(prefix)"), None),
        (("key.startswith(prefix)", "value.startswith(prefix)"), None),
        (("key.startswith(prefix)", "key.startswith((prefix, b'x'))"), None),
        ((APPEND, f"{APPEND}\n            count += 1"), None),
        ((APPEND, "                prefix = key"), None),
        ((APPEND, f"{APPEND}\n            else:\n                pass"), None),
        (("txn.cursor()", "sorted(found)"), None),
        ((FOR, f"{PLACED}\n        for key, value in place"), None),
    ],
)  # fmt: skip
def test_loops(changes, loop):
    words = words_of(*changes)
    assert (words or {}).get("loop") == loop


def test_the_work_on_the_wanted_keys_is_not_counted():
    assert words_of(active="found.append(value)") is None
