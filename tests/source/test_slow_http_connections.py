"""Loops that open an HTTP connection for each request, and loops that do not."""

from __future__ import annotations

import pytest

from source.stacks import stack_of
from teho.source.slow_calls.search import find_slow_calls

CLIENT = """
import http.client, json
class Client:
    def __init__(self, port):
        self.port = port
    def wind(self, point):
        link = http.client.HTTPConnection("127.0.0.1", self.port)
        link.request("GET", f"/wind/{point}")
        series = json.loads(link.getresponse().read())
        link.close()
        return series
def main():
    client = Client(8080)
    for point in range(120):
        client.wind(point)
"""
STACK = ("client.wind(point)", "link.getresponse()", "lib:http/client.py:getresponse")
PLAIN = """
import http.client
def main(host, names):
    for name in names:
        link = http.client.HTTPSConnection(host)
        link.request("GET", name)
        answer = link.getresponse().read()
"""
SESSION = """
import requests
BASE = "http://127.0.0.1:8000"
def ask(name):
    return requests.get(f"{BASE}/{name}", timeout=5).json()
def main(names):
    for name in names:
        ask(name)
"""
ASKS = ("ask(name)", 'requests.get(f"{BASE}/{name}", timeout=5)', "lib:requests/api.py:get")
KINDS = ("connection_of_object", "connection_for_request", "request_without_session")


def found(source, stack):
    for one in find_slow_calls(*stack_of(source, *stack)):
        if one.name in KINDS:
            return one
    return None


def changed(source, *changes):
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in source
        source = source.replace(old, new)
    return source


def test_the_connection_of_an_object():
    one = found(CLIENT, STACK)
    assert one.name == "connection_of_object"
    assert one.at.text == 'http.client.HTTPConnection("127.0.0.1", self.port)'
    assert one.at.line == 14
    assert one.lines[0].line == 16
    assert (one.words["owner"], one.words["name"]) == ("Client", "link")
    assert one.words["close"] == " and `link.close()`"


def test_the_connection_of_a_loop():
    one = found(PLAIN, ("link.getresponse()", "lib:http/client.py:getresponse"))
    assert (one.name, one.words["loop"], one.words["close"]) == (
        "connection_for_request", "train.py:11", "",
    )  # fmt: skip


def test_a_request_without_a_session():
    one = found(SESSION, ASKS)
    assert one.name == "request_without_session"
    assert (one.words["library"], one.words["session"]) == ("requests", "Session")
    assert one.words["loop"] == "train.py:14"
    source = changed(SESSION, 'f"{BASE}/{name}"', '"http://a.org/" + name')
    stack = ("ask(name)", 'requests.get("http://a.org/" + name, timeout=5)')
    assert found(source, stack) is not None


@pytest.mark.parametrize(
    ("source", "stack"),
    [
        (changed(CLIENT, "range(120)", "range(5)"), STACK),  # a few requests
        (changed(CLIENT, '"GET", f"/wind/{point}"', '"GET", "/", headers={"Connection": "close"}'),
         STACK),
        # Another server each time.
        (changed(CLIENT, '"127.0.0.1", self.port)', '"127.0.0.1", point)'), STACK),
        (changed(PLAIN, "Connection(host)", "Connection(name)"), ("link.getresponse()",)),
        # One connection for all requests.
        (changed(PLAIN, "        link = http", "        pass\n    link = http",
                 "        link.request", "    for name in names:\n        link.request"),
         ("link.getresponse()",)),
        # A program that tries again until it gets an answer.
        (changed(PLAIN, ".read()", ".read()\n        break"), ("link.getresponse()",)),
        (changed(PLAIN, "http.client.HTTPSConnection(host)", "pool.take(host)"),
         ("link.getresponse()",)),
        (changed(SESSION, "requests.get", "session.get"),
         (ASKS[0], ASKS[1].replace("requests", "session"), ASKS[2])),
        (changed(SESSION, 'f"{BASE}/{name}"', "name"),
         (ASKS[0], "requests.get(name, timeout=5)", ASKS[2])),
        (changed(SESSION, 'f"{BASE}/{name}"', 'f"http://{name}/"'),
         (ASKS[0], 'requests.get(f"http://{name}/", timeout=5)', ASKS[2])),
        (SESSION, (ASKS[1],)),  # no loop
    ],
)  # fmt: skip
def test_look_alikes(source, stack):
    assert found(source, stack) is None
