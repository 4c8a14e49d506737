"""Resolve taxon names with a name service that allows four requests at a time and 24 a second."""
import asyncio
import hashlib
import json
import multiprocessing as mp
import time

NAMES = 400
AT_A_TIME = 4
PER_SECOND = 24


def name_service(conn):
    state = {"next": 0.0, "open": 0}

    async def session(reader, writer):
        while line := await reader.readline():
            name = json.loads(line)["name"]
            now = time.monotonic()
            state["open"] += 1
            slot = max(state["next"], now)
            state["next"] = slot + 1 / PER_SECOND
            await asyncio.sleep(slot - now)
            digest = hashlib.sha256(name.encode()).hexdigest()
            answer = {"name": name, "id": int(digest[:7], 16), "status": "synonym" if digest[8] < "4" else "accepted"}
            if state["open"] > AT_A_TIME:
                answer["status"] = "refused"
            state["open"] -= 1
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        writer.close()

    async def serve():
        server = await asyncio.start_server(session, "127.0.0.1", 0)
        conn.send(server.sockets[0].getsockname()[1])
        async with server:
            await server.serve_forever()

    asyncio.run(serve())


async def worker(port, names, answers):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while True:
        try:
            name = names.get_nowait()
        except asyncio.QueueEmpty:
            break
        writer.write(json.dumps({"name": name}).encode() + b"\n")
        await writer.drain()
        answers[name] = json.loads(await reader.readline())
    writer.close()
    await writer.wait_closed()


async def resolve(port, wanted):
    names = asyncio.Queue()
    for name in wanted:
        names.put_nowait(name)
    answers = {}
    await asyncio.gather(*(worker(port, names, answers) for _ in range(AT_A_TIME)))
    return answers


def main():
    genera = ["Carex", "Poa", "Salix", "Rosa", "Viola", "Galium", "Silene", "Allium"]
    wanted = [f"{genera[k % 8]} species{k:03d}" for k in range(NAMES)]
    wanted = list(dict.fromkeys(wanted))
    ours, theirs = mp.Pipe()
    service = mp.Process(target=name_service, args=(theirs,), daemon=True)
    service.start()
    answers = asyncio.run(resolve(ours.recv(), wanted))
    service.terminate()
    service.join()
    status = [answers[name]["status"] for name in wanted]
    print("names", len(status), "accepted", status.count("accepted"), "synonyms", status.count("synonym"))
    print("refused", status.count("refused"))
    print("checksum", sum(answers[name]["id"] for name in wanted) % 1_000_003)


if __name__ == "__main__":
    main()
