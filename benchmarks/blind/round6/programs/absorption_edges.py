"""Find absorption maxima with a remote monochromator, one energy after the other.

Each search starts from the drift seen in the one before, so the measurements are sequential.
"""
import asyncio
import math
import multiprocessing as mp

PEAKS = 26
ITERATIONS = 13
GOLDEN = (math.sqrt(5) - 1) / 2


def beamline(conn):
    def response(energy):
        return sum(math.exp(-((energy - 5.0 - 0.5 * k - 0.0012 * k * k) / 0.05) ** 2) for k in range(PEAKS))

    async def session(reader, writer):
        while line := await reader.readline():
            verb, _, argument = line.decode().strip().partition(" ")
            if verb == "LOGIN":
                await asyncio.sleep(0.035)
                writer.write(b"OK\n")
            elif verb == "MEASURE":
                await asyncio.sleep(0.012)
                writer.write(f"{response(float(argument)):.12f}\n".encode())
            await writer.drain()
        writer.close()

    async def serve():
        server = await asyncio.start_server(session, "127.0.0.1", 0)
        conn.send(server.sockets[0].getsockname()[1])
        async with server:
            await server.serve_forever()

    asyncio.run(serve())


async def connect(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"LOGIN operator\n")
    await writer.drain()
    if await reader.readline() != b"OK\n":
        raise RuntimeError("beamline refused the login")
    return reader, writer


async def intensity(port, energy):
    reader, writer = await connect(port)
    writer.write(f"MEASURE {energy:.9f}\n".encode())
    await writer.drain()
    value = float(await reader.readline())
    writer.close()
    await writer.wait_closed()
    return value


async def search(port, low, high):
    a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    fa, fb = await intensity(port, a), await intensity(port, b)
    for _ in range(ITERATIONS):
        if fa > fb:
            high, b, fb = b, a, fa
            a = high - GOLDEN * (high - low)
            fa = await intensity(port, a)
        else:
            low, a, fa = a, b, fb
            b = low + GOLDEN * (high - low)
            fb = await intensity(port, b)
    return (low + high) / 2


async def run(port):
    found, drift = [], 0.0
    for k in range(PEAKS):
        expected = 5.0 + 0.5 * k + drift
        position = await search(port, expected - 0.12, expected + 0.12)
        drift = position - 5.0 - 0.5 * k
        found.append(position)
    return found


def main():
    ours, theirs = mp.Pipe()
    server = mp.Process(target=beamline, args=(theirs,), daemon=True)
    server.start()
    found = asyncio.run(run(ours.recv()))
    server.terminate()
    server.join()
    print("edges found", len(found))
    print("first %.4f  last %.4f" % (found[0], found[-1]))
    print("mean spacing %.5f" % ((found[-1] - found[0]) / (PEAKS - 1)))


if __name__ == "__main__":
    main()
