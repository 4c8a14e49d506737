"""Old map sheets from a library server: coverage of woodland by sheet.

The server (a child process here) greets each connection after it has looked
up the reader's ticket, and needs some time for a sheet. It serves up to eight
connections of one reader at the same time.
"""
import asyncio
import multiprocessing as mp
import socketserver
import struct
import time
import zlib

import numpy as np

SHEETS = 110
SIDE = 500
GREETING = 0.06
SEARCH = 0.085


def sheet_bytes(number):
    rng = np.random.default_rng(1880 + number)
    coarse = rng.normal(size=(20, 20)).repeat(25, axis=0).repeat(25, axis=1)
    ink = (40 * coarse + 8 * rng.normal(size=(SIDE, SIDE)) + 128).clip(0, 255)
    return zlib.compress(ink.astype(np.uint8).tobytes(), 1)


class Library(socketserver.BaseRequestHandler):
    def handle(self):
        time.sleep(GREETING)
        self.request.sendall(b"WELCOME\n")
        while True:
            head = self.request.recv(4)
            if len(head) < 4:
                return
            number = struct.unpack("!I", head)[0]
            time.sleep(SEARCH)
            body = sheet_bytes(number)
            self.request.sendall(struct.pack("!I", len(body)) + body)


def serve(port_box):
    socketserver.ThreadingTCPServer.daemon_threads = True
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Library) as server:
        port_box.put(server.server_address[1])
        server.serve_forever()


def woodland(body):
    ink = np.frombuffer(zlib.decompress(body), dtype=np.uint8).reshape(SIDE, SIDE).astype(float)
    rough = np.zeros_like(ink)
    for dy in range(-2, 3):
        for dx in range(-2, 3):
            rough += np.abs(np.roll(ink, (dy, dx), axis=(0, 1)) - ink)
    return float(((ink > 140) & (rough / 25 < 12)).mean())


async def open_library(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await reader.readline()
    return reader, writer


async def ask(connection, number):
    reader, writer = connection
    writer.write(struct.pack("!I", number))
    await writer.drain()
    size = struct.unpack("!I", await reader.readexactly(4))[0]
    return await reader.readexactly(size)


async def worker(port, sheets, gate, shares):
    while sheets:
        number = sheets.pop()
        async with gate:
            connection = await open_library(port)
            body = await ask(connection, number)
            connection[1].close()
        shares[number] = woodland(body)


async def survey(port):
    sheets = list(range(SHEETS))
    shares = {}
    gate = asyncio.Lock()
    await asyncio.gather(*(worker(port, sheets, gate, shares) for _ in range(6)))
    return shares


def main():
    port_box = mp.Queue()
    server = mp.Process(target=serve, args=(port_box,), daemon=True)
    server.start()
    shares = asyncio.run(survey(port_box.get()))
    server.terminate()
    server.join()
    values = np.array([shares[number] for number in range(SHEETS)])
    print(f"{len(values)} sheets, woodland {100 * values.mean():.3f} %")
    print(f"most woodland on sheet {int(values.argmax())}: {100 * values.max():.2f} %")


if __name__ == "__main__":
    main()
