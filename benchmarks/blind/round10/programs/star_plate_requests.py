"""Requests scans of photographic star plates from an archive that admits six calls a second."""
import asyncio
import json
import multiprocessing as mp
import time

import numpy as np

PLATES = 104
RATE = 6.0
SIDE = 64


def archive(pipe):
    """The archive: answers 429 to a caller that asks more often than it admits."""
    seen = []

    async def answer(reader, writer):
        line = (await reader.readline()).decode()
        while (await reader.readline()).strip():
            pass
        now = time.monotonic()
        seen[:] = [t for t in seen if now - t < 1.0]
        if len(seen) > RATE:
            status, body = "429 Too Many Requests", b"{}"
        else:
            seen.append(now)
            plate = int(line.split()[1].rsplit("/", 1)[1])
            rng = np.random.default_rng(plate)
            image = rng.poisson(20, (SIDE, SIDE))
            for y, x in rng.integers(4, SIDE - 4, (12, 2)):
                image[y - 1:y + 2, x - 1:x + 2] += rng.integers(80, 400)
            status, body = "200 OK", json.dumps(image.tolist()).encode()
        await asyncio.sleep(0.3)
        writer.write(f"HTTP/1.0 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    async def run():
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


async def fetch(port, plate):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET /plate/{plate} HTTP/1.0\r\n\r\n".encode())
    raw = await reader.read()
    writer.close()
    head, body = raw.split(b"\r\n\r\n", 1)
    return head.split()[1] == b"200", body


async def collect(port):
    begin = asyncio.get_running_loop().time()

    async def one(k):
        await asyncio.sleep(max(0.0, begin + k / RATE - asyncio.get_running_loop().time()))
        good, body = await fetch(port, k)
        if not good:
            return None
        image = np.array(json.loads(body), dtype=float)
        return float((image > image.mean() + 4 * image.std()).sum()), float(np.median(image))

    return await asyncio.gather(*(one(k) for k in range(PLATES)))


def main():
    near, far = mp.Pipe()
    server = mp.get_context("fork").Process(target=archive, args=(far,), daemon=True)
    server.start()
    rows = asyncio.run(collect(near.recv()))
    server.terminate()
    server.join()
    good = np.array([row for row in rows if row is not None])
    print(f"{len(good)} of {PLATES} plates received")
    print(f"bright pixels {good[:, 0].mean():.2f} a plate, sky {good[:, 1].mean():.2f}")


if __name__ == "__main__":
    main()
