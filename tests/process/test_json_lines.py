"""Messages through pipes: nothing that was sent is lost."""

from __future__ import annotations

import os
import threading

import pytest

from teho.process.json_lines import LineReader, LineTooLongError, send, send_all


def pair() -> tuple[LineReader, int]:
    read, write = os.pipe()
    return LineReader(read), write


def test_messages_that_come_together_are_taken_one_by_one() -> None:
    reader, write = pair()
    send(write, plan={"node": "n1"})
    send(write, end=1.5)
    os.close(write)
    assert reader.wait(5)
    assert next(reader.messages()) == {"plan": {"node": "n1"}}
    # The program may have ended before the recorder had its plan: the end must not be lost.
    assert reader.has_messages
    assert reader.wait(5)
    assert list(reader.messages()) == [{"end": 1.5}]
    assert reader.closed
    os.close(reader.descriptor)


def test_a_message_in_two_parts() -> None:
    reader, write = pair()
    os.write(write, b'{"signal": ')
    assert list(reader.messages()) == []
    os.write(write, b"10}\n")
    assert list(reader.messages()) == [{"signal": 10}]
    assert not reader.wait(0)
    assert not reader.closed
    os.close(write)
    os.close(reader.descriptor)


def test_lines_of_others_come_as_they_are() -> None:
    """As srun's own words among those of the recorders that it has started."""
    reader, write = pair()
    os.write(write, b'srun: error: no\n{"node": "n2", "sealed": true}\n[1, 2]\n\xff\n')
    os.close(write)
    assert list(reader.messages()) == [
        {"said": "srun: error: no"},
        {"node": "n2", "sealed": True},
        {"said": "[1, 2]"},
        {"said": "\ufffd"},
    ]
    os.close(reader.descriptor)


def test_the_reader_has_ended() -> None:
    reader, write = pair()
    os.close(reader.descriptor)
    send(write, trouble="x")  # SIGPIPE is ignored by Python, EPIPE by send
    with pytest.raises(BrokenPipeError):
        send_all(write, trouble="x")
    os.close(write)


def test_a_message_that_is_larger_than_the_pipe() -> None:
    read, write = os.pipe()
    reader = LineReader(read, blocking=True)
    text = "x" * 300_000
    writer = threading.Thread(target=send_all, args=(write,), kwargs={"text": text})
    writer.start()
    while not reader.has_messages:
        assert reader.read()
    writer.join()
    assert reader.take() == [{"text": text}]
    assert reader.take() == []
    os.close(write)
    assert not reader.read()
    assert reader.closed
    os.close(read)


def test_a_line_that_is_too_long() -> None:
    read, write = os.pipe()
    reader = LineReader(read, blocking=True, longest_bytes=10)
    os.write(write, b'{"a": 1}\n{"b": 2 and so on')
    with pytest.raises(LineTooLongError, match='"b": 2'):
        reader.read()
    os.close(write)
    os.close(read)


def test_lines_that_the_caller_parses() -> None:
    read, write = os.pipe()
    reader = LineReader(read, lambda line: {"length": len(line)})
    os.write(write, b"abc\n\n")
    assert list(reader.messages()) == [{"length": 3}, {"length": 0}]
    os.close(write)
    os.close(read)
