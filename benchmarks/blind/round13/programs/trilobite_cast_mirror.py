"""Mirror the outline files of a museum's trilobite casts and compute shape descriptors."""
import asyncio
import json
import multiprocessing as mp
import random

import numpy as np

CASTS = 260
AT_ONCE = 8
POINTS = 256


def outline_of(cast):
    rng = np.random.default_rng(cast)
    angle = np.linspace(0, 2 * np.pi, POINTS, endpoint=False)
    radius = 10 + 2 * np.cos(2 * angle) + sum(
        rng.normal(0, 0.6 / k) * np.cos(k * angle + rng.uniform(0, 6)) for k in range(3, 9))
    return np.column_stack([radius * np.cos(angle), 0.7 * radius * np.sin(angle)]).round(4).tolist()


async def museum(port_pipe):
    """Stand-in for the museum's server; some files come from a slow tape store."""
    async def answer(reader, writer):
        request = json.loads(await reader.readline())
        cast = request["cast"]
        rng = random.Random(cast * 7919)
        wait = rng.uniform(0.08, 0.25)
        if rng.random() < 0.1:
            wait += 1.0
        await asyncio.sleep(wait)
        writer.write(json.dumps({"cast": cast, "outline": outline_of(cast)}).encode() + b"\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=1 << 20)
    port_pipe.send(server.sockets[0].getsockname()[1])
    async with server:
        await server.serve_forever()


def run_museum(port_pipe):
    asyncio.run(museum(port_pipe))


async def fetch(port, cast):
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    writer.write(json.dumps({"cast": cast}).encode() + b"\n")
    await writer.drain()
    reply = json.loads(await reader.readline())
    writer.close()
    return np.array(reply["outline"])


def descriptor(outline):
    """Sizes of the first Fourier harmonics, free of scale."""
    z = outline[:, 0] + 1j * outline[:, 1]
    harmonics = np.abs(np.fft.fft(z))[1:12]
    return harmonics / harmonics[0]


async def mirror(port):
    """At most AT_ONCE requests at a time, as the museum asks."""
    outlines = []
    for first in range(0, CASTS, AT_ONCE):
        batch = range(first, min(first + AT_ONCE, CASTS))
        outlines += await asyncio.gather(*(fetch(port, cast) for cast in batch))
    return outlines


def main():
    ours, theirs = mp.Pipe()
    server = mp.Process(target=run_museum, args=(theirs,), daemon=True)
    server.start()
    outlines = asyncio.run(mirror(ours.recv()))
    server.terminate()
    server.join()
    table = np.array([descriptor(outline) for outline in outlines])
    centred = table - table.mean(axis=0)
    values = np.linalg.svd(centred, compute_uv=False) ** 2
    print("casts:", len(outlines))
    print("variance of the first two components: %.3f %.3f" % tuple(values[:2] / values.sum()))
    print("mean harmonics:", np.round(table.mean(axis=0)[1:5], 4))


if __name__ == "__main__":
    main()
