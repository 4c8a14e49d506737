"""Files are read in pieces: whole, damaged, truncated, and in any layout."""

from __future__ import annotations

import gzip
import json
import math
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profile_traces import call, event, kernel, operator, path_of, step, write
from teho.errors import DamagedError, InputError, TehoError
from teho.profile import stream
from teho.profile.load import load
from teho.profile.stream import EventStream
from teho.profile.summary import read_trace

SMALL = [
    step(0, 0, 200),
    operator('aten::"}, {"', 5, 10),
    event("cpu_op", "Å, {[\\ ]} \t", 12, 13, shape=[[1, 2], [{"a": {}}]], nothing=None),
    call(1, 100, 105),
    kernel(1, 110, 150),
]
DOCUMENT = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "H"}], "traceEvents": SMALL,
            "traceName": "a.json"}  # fmt: skip


def read(path: Path) -> tuple[list[tuple[str, object, object]], EventStream]:
    """Return name, start and duration of all events, and the stream."""
    reader = EventStream(path)
    events = [one for batch in reader.batches() for one in batch]
    return [(one.name, one.ts, one.dur) for one in events], reader


def expected(events) -> list[tuple[str, object, object]]:
    return [(one.get("name", ""), one.get("ts"), one.get("dur")) for one in events]


def error_of(path: Path) -> str:
    """Return the message if the trace cannot be read; any other exception is a bug."""
    try:
        read_trace(path)
    except TehoError as error:
        return str(error)
    return ""


NASTY = st.text(st.sampled_from('a"\\{}[],: \n\x1fä€😀'), max_size=12)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 10**16)
    | st.floats(allow_nan=False, allow_infinity=False)
    | NASTY,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NASTY, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
EVENTS = st.lists(
    st.fixed_dictionaries(
        {"name": NASTY, "ts": st.integers(0, 10**6), "dur": st.integers(0, 99)},
        optional={"other": VALUES, "args": st.dictionaries(NASTY, VALUES, max_size=3)},
    ),
    max_size=8,
)


@given(
    events=EVENTS,
    before=st.dictionaries(NASTY, VALUES, max_size=2),
    after=st.dictionaries(NASTY.map("x".__add__), VALUES, max_size=2),
    indent=st.sampled_from([None, 0, 2]),
    is_ascii=st.booleans(),
    piece=st.sampled_from([16, 37, 64, 1000]),
    tail=st.sampled_from([8, 40, 10_000]),
    is_list=st.booleans(),
    is_packed=st.booleans(),
)
def test_any_layout_is_read(
    tmp_path_factory: pytest.TempPathFactory, events, before, after, indent, is_ascii, piece, tail,
    is_list, is_packed,
) -> None:  # fmt: skip
    path = tmp_path_factory.getbasetemp() / "any.json"
    document = events if is_list else {**before, "traceEvents": events, **after}
    separators = (",", ":") if indent is None else None
    text = json.dumps(document, indent=indent, ensure_ascii=is_ascii, separators=separators)
    path.write_bytes(gzip.compress(text.encode()) if is_packed else text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "_PIECE_BYTES", piece)
        patch.setattr(stream, "_TAIL_BYTES", tail)
        found, reader = read(path)
    assert found == expected(events)
    assert reader.has_events
    assert reader.unread == 0
    assert reader.values == ({} if is_list else {**before, **after})


@pytest.mark.parametrize("size", range(1, 60))
def test_a_number_on_the_border_of_two_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(stream, "_PIECE_BYTES", size)
    path = write(tmp_path, SMALL, base=1790857026000000000, unit=12.5e-7, flag=True)
    found, reader = read(path)
    assert found == expected(SMALL)
    assert reader.values == {
        "schemaVersion": 1, "base": 1790857026000000000, "unit": 12.5e-7, "flag": True,
    }  # fmt: skip


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_file_that_ends_at_any_place(tmp_path: Path, is_packed: bool) -> None:
    text = json.dumps(DOCUMENT).encode()
    whole = gzip.compress(text) if is_packed else text
    path = tmp_path / "trace.json"
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(InputError if size == 0 else TehoError) as caught:
            read(path)
        message = str(caught.value)
        assert str(path) in message
        assert "\n" not in message
        if size > (2 if is_packed else 0):
            assert "truncated" in message, (size, message)


def test_a_file_with_one_wrong_byte_at_any_place(tmp_path: Path) -> None:
    text = json.dumps(DOCUMENT, indent=1).encode()
    path = tmp_path / "trace.json"
    damaged = 0
    for place in range(len(text)):
        for byte in (b'"', b"}", b"\xff"):
            path.write_bytes(text[:place] + byte + text[place + 1 :])
            damaged += str(path) in error_of(path)
    assert damaged > len(text) / 2


@given(place=st.integers(0, 38_000), byte=st.integers(0, 255), size=st.integers(1, 40))
def test_a_compressed_file_with_wrong_bytes(
    tmp_path_factory: pytest.TempPathFactory, place: int, byte: int, size: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.json.gz"
    whole = path_of("conv").read_bytes()
    path.write_bytes(whole[:place] + bytes([byte]) * size + whole[place + size :])
    assert error_of(path) == "" or str(path) in error_of(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (b"  \n", "the file is empty"),
        (b"hello", "is not JSON"),
        (b"\x89PNG\r\n", "is not JSON"),
        (b"{}", "has no events of PyTorch's profiler"),
        (b"[]", "has no events of PyTorch's profiler"),
        (b'{"traceEvents": []}', "has no events of PyTorch's profiler"),
        (b'{"traceEvents": {}}', "has no events of PyTorch's profiler"),
        (b'[{"ph": "X", "cat": "other", "ts": 1, "dur": 1}]', "but 1 other"),
        (b'{"traceEvents": 3 4}', "damaged at byte"),
        (b'{"traceEvents": [}', "truncated"),
        (b'{"traceEvents": [}, {"name": "aten::add"}]}', "damaged at byte"),
        (b'{"traceEvents": [{"name": nil, "cat": "cpu_op"}]}', "damaged at byte"),
        (b"{5: 6}", "a key is missing"),
        (b'{"a" 6}', "no colon"),
        (b"[" * 100_000, "damaged at byte"),
        (b'{"a": ' + b"[" * 100_000, "damaged at byte"),
    ],
)
def test_files_that_are_no_traces(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(TehoError) as caught:
        read_trace(path)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_directory(tmp_path: Path) -> None:
    for path, words in ((tmp_path / "none.json", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(InputError, match=words):
            read_trace(path)


def test_damage_names_the_byte(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    text = json.dumps(SMALL)
    place = text.index('"aten::')
    path.write_text(text[:place] + "?" + text[place:])
    with pytest.raises(DamagedError, match="damaged at byte") as caught:
        read(path)
    byte = int(str(caught.value).split("byte ")[1].split(":")[0].replace(",", ""))
    assert text.index("}, {") < byte <= place  # the start of the event


def test_numbers_that_json_does_not_have(tmp_path: Path) -> None:
    path = write(tmp_path, SMALL)
    text = path.read_text()
    for number, word in enumerate(("nan", "-inf", "Infinity", "-nan", "NaN")):
        path.write_text(text.replace('"nothing": null', f'"nothing": {word}', 1))
        assert read(path)[0] == expected(SMALL), number


def test_an_event_that_is_nested_too_deeply_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    deep = '{"args": {"a": ' + "[" * 900 + "]" * 900 + "}}"
    path.write_text(f"[{json.dumps(SMALL[0])}, {deep}, {json.dumps(SMALL[1])}]")
    found, reader = read(path)
    assert [name for name, *_ in found if name] == [SMALL[0]["name"], SMALL[1]["name"]]
    assert len(found) + reader.unread == 3


def test_a_large_file_needs_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of 63 MB needs less than 16 MB, and hardly any event is decoded twice."""
    slow = []
    singly = EventStream._decoded_singly
    monkeypatch.setattr(
        EventStream, "_decoded_singly", lambda self: slow.append(batch := singly(self)) or batch
    )
    path = tmp_path / "large.json"
    padding = {"padding": "x" * 2000}
    with path.open("w") as file:
        file.write("[")
        for number in range(30_000):
            one = operator(f"op{number % 50}", number, number + 0.5)
            file.write(json.dumps({**one, "args": padding}) + ",\n")
        file.write(json.dumps(step(0, 0, 30_000)) + "]")
    assert path.stat().st_size > 60e6
    tracemalloc.start()
    try:
        loaded = load(path)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert loaded.events == 30_001
    (track,) = loaded.operators.values()
    assert math.isclose(sum(track.ends) - sum(track.starts), 30_000 * 500)
    assert peak_bytes < 16e6
    assert sum(map(len, slow)) < 10
