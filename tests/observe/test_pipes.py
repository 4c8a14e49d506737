"""The pipe between supervisor and recorder: nothing that was sent is lost."""

from __future__ import annotations

import os

from teho.observe.pipes import LineReader, send


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


def test_nobody_reads_any_more() -> None:
    reader, write = pair()
    os.close(reader.descriptor)
    send(write, trouble="x")  # SIGPIPE is ignored by Python, EPIPE by send
    os.close(write)
