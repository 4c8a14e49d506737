"""A build driver: starts a child process and waits for its end, talks to another over loopback,
computes a long decimal and plans in Python; stretches of 10 to 150 ms."""

import decimal
import json
import random
import socket
import subprocess
import sys
from time import perf_counter as clock

KIND = {"child": "process", "socket": "process", "decimal": "native", "plan": "python"}
WORKER = """
import socket, sys, time
link = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
for word in iter(lambda: link.recv(16), b""):
    time.sleep(int(word) / 1000)
    link.sendall(b"done")
"""


def request(link: socket.socket, ms: int) -> bytes:
    link.sendall(b"%d" % ms)
    return link.recv(16)


def plan(limit: int) -> int:
    return sum(all(n % d for d in range(2, int(n**0.5) + 1)) for n in range(2, limit))


def main(seconds: float) -> None:
    rng = random.Random(15)
    python = [sys.executable, "-S", "-E", "-c"]
    context = decimal.Context(prec=16_000)
    server = socket.create_server(("127.0.0.1", 0))
    worker = subprocess.Popen(python + [WORKER, str(server.getsockname()[1])])
    link, _ = server.accept()
    used = [0.0] * 4
    t4 = start = clock()
    while t4 - start < seconds:
        n = rng.randrange(150, 900)
        t0 = clock()
        subprocess.run(python + ["sum(i * i for i in range(900000))"], check=True)  #: child
        t1 = clock()
        request(link, n // 13)  #: socket
        t2 = clock()
        context.sqrt(decimal.Decimal(n))  #: decimal
        t3 = clock()
        plan(n * 60)  #: plan
        t4 = clock()
        ends = (t0, t1, t2, t3, t4)
        used = [total + ends[i + 1] - ends[i] for i, total in enumerate(used)]
    link.close()
    server.close()
    worker.wait()
    print(json.dumps({"loop_s": t4 - start, "stretches": dict(zip(KIND, used))}))


if __name__ == "__main__":
    main(float(sys.argv[1]))
