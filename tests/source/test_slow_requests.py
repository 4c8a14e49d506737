"""Requests that are sent in two parts before the answer is read, and requests that are not."""

from __future__ import annotations

import pytest

from source.stacks import stack_of
from teho.source.slow_calls.search import find_slow_calls

PROGRAM = """
import socket, struct, ssl
def read_exact(link, count):
    data = b""
    while len(data) < count:
        data += link.recv(count - len(data))
    return data
def scan(link, number, body):
    link.sendall(struct.pack("!HI", number, len(body)))
    link.sendall(body)
    answer = read_exact(link, 8)
    return answer
def main(host):
    link = socket.create_connection((host, 5025))
    for number in range(450):
        scan(link, number, b"x" * number)
"""
STACK = ("scan(link, number, b", "read_exact(link, 8)", "link.recv(count - len(data))")
STACK = ('scan(link, number, b"x" * number)', *STACK[1:])
FIRST = 'link.sendall(struct.pack("!HI", number, len(body)))'


def found(source=PROGRAM, stack=STACK):
    for one in find_slow_calls(*stack_of(source, *stack)):
        if one.name == "request_in_two_parts":
            return one
    return None


def changed(*changes):
    source = PROGRAM
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in source
        source = source.replace(old, new)
    return source


def test_names_both_parts_and_one_call_for_them():
    one = found()
    assert one.at.text == "link.sendall(body)"
    assert one.words == {
        "link": "link",
        "new": "link.sendall(b''.join((struct.pack('!HI', number, len(body)), body)))".replace(
            "b''", 'b""'
        ),
        "first": "line 16",
        "made": "train.py:21",
    }
    assert [line.text for line in one.lines] == ["read_exact(link, 8)"]


def test_three_parts_are_one_call():
    one = found(
        changed("    link.sendall(body)\n", '    link.sendall(body)\n    link.send(b"#")\n')
    )
    assert one.words["first"] == "lines 16 and 17"
    assert one.words["new"].endswith(", body, b'#')))")


@pytest.mark.parametrize(
    "changes",
    [
        (FIRST, 'link.send(b"GET")'),
        (FIRST, 'link.send(f"{number} ".encode())'),
        (FIRST, 'head = struct.pack("!I", number)\n    link.send(head)'),
        (FIRST, "link.send(len(body).to_bytes(4, 'big'))"),
        ("    answer = read", "    began = len(body)\n    answer = read"),
        (
            "socket.create_connection((host, 5025))",
            "socket.socket(socket.AF_INET, socket.SOCK_STREAM)",
        ),
        ("socket.create_connection((host, 5025))", "socket.socket()\n    link.connect((host, 5))"),
    ],
)
def test_other_requests(changes):
    assert found(changed(*changes)) is not None


def test_a_function_sends_both_parts():
    source = changed(
        FIRST + "\n    link.sendall(body)",
        "send_message(link, body)",
        "def scan(",
        "def send_message(sock, payload):\n"
        '    sock.sendall(struct.pack("!I", len(payload)))\n'
        "    sock.sendall(payload)\n"
        "def scan(",
    )
    one = found(source)
    assert one.words["link"] == "sock"
    assert one.at.function == "send_message"


CLIENT = """
import socket, struct
class Client:
    def __init__(self, host):
        self.sock = None
        self.sock = socket.create_connection((host, 5025))
    def send(self, body):
        self.sock.sendall(struct.pack("!I", len(body)))
        self.sock.sendall(body)
    def receive(self):
        return self.sock.recv(100)
    def ask(self, body):
        self.send(body)
        return self.receive()
"""
ASKS = ("self.receive()", "self.sock.recv(100)")


def test_a_class_has_the_socket():
    one = found(CLIENT, ASKS)
    assert one.words["new"].startswith('self.sock.sendall(b"".join((struct.pack')
    assert one.words["made"] == "train.py:13"


@pytest.mark.parametrize(
    "source",
    [
        CLIENT.replace(
            "        self.sock.sendall(body)",
            "        self.sock.recv(1)\n        self.sock.sendall(body)",
        ),
        CLIENT.replace("self.sock = None", "self.sock = wrap(host)"),
        CLIENT.replace(
            "        self.send(body)\n", "        self.send(body)\n        self.receive()\n"
        ),
        CLIENT.replace(
            "(host, 5025))", "(host, 5025))\n        self.sock.setsockopt(6, TCP_NODELAY, 1)"
        ),
    ],
)
def test_look_alikes_of_a_class(source):
    assert found(source, ASKS) is None


@pytest.mark.parametrize(
    "changes",
    [
        (FIRST + "\n", "pass\n"),  # one part
        ("    link.sendall(body)\n", ""),
        (FIRST, "link.sendall(body)"),  # perhaps a large first part
        (FIRST, 'link.sendall(struct.pack("!I", number), socket.MSG_MORE)'),
        ("link.sendall(body)", "link.recv(1)\n    link.sendall(body)"),  # an answer between them
        ("answer = read", "link.recv(2)\n    answer = read"),
        ("5025))", "5025))\n    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)"),
        (
            "socket.create_connection((host, 5025))",
            "socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)",
        ),
        (
            "socket.create_connection((host, 5025))",
            "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
        ),
        ("socket.create_connection((host, 5025))", "open_link(host)"),  # not known
        ("link.sendall(body)", "other.sendall(body)"),
        ("    link.sendall(body)", "    if body:\n        link.sendall(body)"),
    ],
)
def test_look_alikes(changes):
    assert found(changed(*changes)) is None


def test_a_feed_that_is_only_read():
    source = """
    import socket
    def main(host):
        link = socket.create_connection((host, 5025))
        while True:
            part = link.recv(4096)
    """
    assert found(source, ("link.recv(4096)",)) is None
