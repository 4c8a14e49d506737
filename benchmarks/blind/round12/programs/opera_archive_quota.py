"""Cast lists from an opera archive whose service allows a fixed number of requests per second."""
import asyncio
import json
import multiprocessing as mp
import socket

import numpy as np

EVENINGS = 260
ALLOWED = 12.0
BURST = 4
WORKERS = 4
LATENCY = 0.12


class Quota:
    """Token bucket as the service documents it: ALLOWED per second, BURST at once; 429 when it is empty."""

    def __init__(self, loop):
        self.loop, self.level, self.last = loop, float(BURST), loop.time()

    def take(self):
        now = self.loop.time()
        self.level = min(BURST, self.level + (now - self.last) * ALLOWED)
        self.last = now
        if self.level < 1.0:
            return False
        self.level -= 1.0
        return True


def cast_list(evening):
    rng = np.random.default_rng(evening)
    size = int(rng.integers(5, 14))
    return {"evening": evening, "opera": int(rng.zipf(1.8)) % 60, "singers": rng.integers(0, 240, size).tolist()}


def serve(sock):
    async def run():
        quota = Quota(asyncio.get_running_loop())

        async def answer(reader, writer):
            while line := await reader.readline():
                allowed = quota.take()
                await asyncio.sleep(LATENCY)
                body = cast_list(int(line)) if allowed else {"status": 429, "retry_after": 1.0}
                writer.write(json.dumps(body).encode() + b"\n")
            writer.close()

        server = await asyncio.start_server(answer, sock=sock)
        await server.serve_forever()
    asyncio.run(run())


class Pacer:
    def __init__(self, per_second):
        self.gap, self.next_at = 1.0 / per_second, 0.0

    async def turn(self):
        now = asyncio.get_running_loop().time()
        at = max(now, self.next_at)
        self.next_at = at + self.gap
        await asyncio.sleep(at - now)


async def collect(port):
    pacer, lists, refused = Pacer(ALLOWED * 0.98), {}, 0
    todo = iter(range(EVENINGS))

    async def work():
        nonlocal refused
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for evening in todo:
            while evening not in lists:
                await pacer.turn()
                writer.write(f"{evening}\n".encode())
                reply = json.loads(await reader.readline())
                if reply.get("status") == 429:
                    refused += 1
                    await asyncio.sleep(reply["retry_after"])
                else:
                    lists[evening] = reply
        writer.close()

    await asyncio.gather(*(work() for _ in range(WORKERS)))
    return lists, refused


def main():
    sock = socket.create_server(("127.0.0.1", 0))
    child = mp.get_context("fork").Process(target=serve, args=(sock,), daemon=True)
    child.start()
    lists, _ = asyncio.run(collect(sock.getsockname()[1]))
    child.terminate()
    child.join()
    together = np.zeros((240, 240), dtype=int)
    for evening in sorted(lists):
        singers = np.unique(lists[evening]["singers"])
        together[np.ix_(singers, singers)] += 1
    np.fill_diagonal(together, 0)
    a, b = np.unravel_index(together.argmax(), together.shape)
    operas = np.bincount([lists[e]["opera"] for e in lists])
    print(f"{len(lists)} evenings, most played opera {operas.argmax()} ({operas.max()} times)")
    print(f"singers {a} and {b} sang together {together[a, b]} times")


if __name__ == "__main__":
    main()
