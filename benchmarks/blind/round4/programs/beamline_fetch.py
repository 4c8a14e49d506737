"""Azimuthal averages of detector frames served by the beamline archive."""
import asyncio
import multiprocessing as mp

import numpy as np
from scipy import ndimage

SIDE = 160
SCANS = 360
ZOOM = 4
OFFSET = np.arange(SIDE * ZOOM) - SIDE * ZOOM / 2
RING = np.hypot(OFFSET[:, None], OFFSET[None, :]).astype(np.int64).ravel()
COUNT = np.bincount(RING)


def detector_frame(scan):
    rng = np.random.default_rng(scan)
    yy, xx = np.mgrid[0:SIDE, 0:SIDE] - SIDE / 2
    r = np.hypot(xx, yy)
    rings = sum(np.exp(-((r - c) / 2.0) ** 2) for c in (18 + scan % 5, 33, 52))
    return rng.poisson(20 + 300 * rings).astype(np.int32)


async def archive(port_pipe):
    frames = [detector_frame(k) for k in range(24)]

    async def reply(reader, writer):
        scan = int((await reader.readline()).decode())
        await asyncio.sleep(0.03)
        writer.write(frames[scan % len(frames)].tobytes())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(reply, "127.0.0.1", 0)
    port_pipe.send(server.sockets[0].getsockname()[1])
    async with server:
        await server.serve_forever()


def run_archive(port_pipe):
    asyncio.run(archive(port_pipe))


async def fetch(port, scan):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{scan}\n".encode())
    await writer.drain()
    raw = await reader.read(-1)
    writer.close()
    return np.frombuffer(raw, dtype=np.int32).reshape(SIDE, SIDE)


def integrate(frame, gain):
    fine = ndimage.zoom(frame * gain, ZOOM, order=3)
    total = np.bincount(RING, weights=fine.ravel())
    return total[:300] / COUNT[:300]


async def collect(port):
    profiles = []
    for scan in range(SCANS):
        frame = await fetch(port, scan)
        profiles.append(integrate(frame, 1.0 + 0.001 * scan))
    return profiles


def main():
    ours, theirs = mp.Pipe()
    service = mp.Process(target=run_archive, args=(theirs,), daemon=True)
    service.start()
    port = ours.recv()
    profiles = np.array(asyncio.run(collect(port)))
    service.terminate()
    service.join()
    mean = profiles.mean(axis=0)
    peak = int(mean[40:].argmax()) + 40
    print(f"scans {len(profiles)}  strongest ring at {peak / ZOOM:.2f} px")
    print(f"level {mean.mean():.5f}  drift {np.std(profiles[:, peak]):.5f}")


if __name__ == "__main__":
    main()
