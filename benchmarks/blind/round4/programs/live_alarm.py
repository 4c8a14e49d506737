"""Earthquake alarm on a live station feed (STA/LTA on 50 packets a second)."""
import asyncio
import multiprocessing as mp

import numpy as np

RATE = 200
CHUNK = 4
SECONDS = 26


async def station(pipe):
    rng = np.random.default_rng(1989)
    motion = rng.normal(0, 1, RATE * SECONDS)
    for start in (900, 2300, 3900):
        t = np.arange(300) / RATE
        motion[start:start + 300] += 14 * np.exp(-2 * t) * np.sin(2 * np.pi * 7 * t)
    done = asyncio.Event()

    async def feed(reader, writer):
        loop = asyncio.get_running_loop()
        begin = loop.time()
        for k in range(0, len(motion), CHUNK):
            due = begin + (k + CHUNK) / RATE
            await asyncio.sleep(max(0.0, due - loop.time()))
            writer.write(motion[k:k + CHUNK].tobytes())
            await writer.drain()
        writer.close()
        done.set()

    server = await asyncio.start_server(feed, "127.0.0.1", 0)
    pipe.send(server.sockets[0].getsockname()[1])
    await done.wait()
    server.close()


def run_station(pipe):
    asyncio.run(station(pipe))


async def watch(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    sta = lta = 1.0
    alarms = []
    armed = True
    n = 0
    while True:
        try:
            raw = await reader.readexactly(8 * CHUNK)
        except asyncio.IncompleteReadError:
            break
        power = np.frombuffer(raw) ** 2
        for p in power:
            sta += 0.05 * (p - sta)
            lta += 0.001 * (p - lta)
            n += 1
            if armed and n > 400 and sta > 6 * lta:
                alarms.append(n / RATE)
                armed = False
            elif sta < 1.5 * lta:
                armed = True
    writer.close()
    return n, alarms


def main():
    ours, theirs = mp.Pipe()
    service = mp.Process(target=run_station, args=(theirs,))
    service.start()
    n, alarms = asyncio.run(watch(ours.recv()))
    service.join()
    print("samples", n, "alarms", len(alarms), "first at %.2f s" % alarms[0])


if __name__ == "__main__":
    main()
