"""Hourly activity index from the archive of a magnetometer network."""
import asyncio
import json
import multiprocessing as mp

import numpy as np

N_RECORDS = 560
CONNECTIONS = 8          # the archive serves at most eight requests of a client at a time
SAMPLES = 3600


def staging_delay(record):
    """Seconds until the archive has a record at hand: most are on disk, some on tape."""
    scramble = (record * 2654435761) % 1000
    return 0.32 if scramble < 110 else 0.012


async def answer(reader, writer):
    record = int(await reader.readline())
    await asyncio.sleep(staging_delay(record))
    rng = np.random.default_rng(record)
    field = np.cumsum(rng.normal(0, 0.4, SAMPLES)) + 20.0 * rng.random()
    writer.write(json.dumps({"record": record, "nT": field.round(2).tolist()}).encode() + b"\n")
    await writer.drain()
    writer.close()


def archive(pipe):
    async def serve():
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        async with server:
            await server.serve_forever()

    asyncio.run(serve())


async def request(port, record):
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2 ** 20)
    writer.write(b"%d\n" % record)
    line = await reader.readline()
    writer.close()
    return activity(json.loads(line))


def activity(message):
    """Largest excursion from the quiet-day curve, and the power of short pulsations."""
    field = np.array(message["nT"])
    quiet = np.polynomial.polynomial.polyfit(np.arange(SAMPLES), field, 5)
    rest = field - np.polynomial.polynomial.polyval(np.arange(SAMPLES), quiet)
    spectrum = np.abs(np.fft.rfft(rest * np.hanning(SAMPLES))) ** 2
    return message["record"], float(np.ptp(rest)), float(spectrum[24:360].sum())


async def collect(port):
    results = []
    for first in range(0, N_RECORDS, CONNECTIONS):
        block = range(first, min(first + CONNECTIONS, N_RECORDS))
        results += await asyncio.gather(*(request(port, record) for record in block))
    return results


def main():
    receiver, sender = mp.Pipe(duplex=False)
    server = mp.Process(target=archive, args=(sender,), daemon=True)
    server.start()
    port = receiver.recv()
    results = asyncio.run(collect(port))
    server.terminate()
    server.join()

    table = np.array(sorted(results))
    index = np.digitize(table[:, 1], [10, 20, 30, 45, 60, 80, 110])
    print("records", len(table))
    print("index histogram", np.bincount(index, minlength=8).tolist())
    print("median pulsation power %.3e" % np.median(table[:, 2]))


if __name__ == "__main__":
    main()
