# Pull station records in parallel and put them into one table
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

lock = threading.Lock()
table = {}


def station_server(sock):
    while True:
        c, _ = sock.accept()
        threading.Thread(target=answer, args=(c,), daemon=True).start()


def answer(c):
    with c:
        name = c.recv(64).decode()
        time.sleep(0.12)  # the archive is on tape
        k = int(name.split("-")[1])
        c.sendall(",".join(str((k * i) % 97) for i in range(400)).encode())


def pull(port, k):
    with lock:
        with socket.create_connection(("127.0.0.1", port)) as s:
            s.sendall(f"station-{k}".encode())
            parts = []
            while chunk := s.recv(4096):
                parts.append(chunk)
        values = [int(v) for v in b"".join(parts).split(b",")]
        table[k] = sum(values) / len(values)


srv = socket.create_server(("127.0.0.1", 0), backlog=64)
threading.Thread(target=station_server, args=(srv,), daemon=True).start()
with ThreadPoolExecutor(8) as ex:
    futures = [ex.submit(pull, srv.getsockname()[1], k) for k in range(180)]
    for i, f in enumerate(futures):
        f.result()
        if i % 30 == 0:
            print(i, "stations", flush=True)
print("mean rain", sum(table.values()) / len(table))
