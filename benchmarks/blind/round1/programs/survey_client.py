"""Ask the catalogue service for 300 objects. It drops a connection now and then."""
import random
import socket
import threading
import time


def serve(sock):
    r = random.Random(0)
    while True:
        c, _ = sock.accept()
        with c:
            q = c.recv(100)
            if r.random() < 0.12:
                continue
            time.sleep(0.01)
            c.sendall(q[::-1] * 20)


def ask(port, k):
    wait = 0.7
    for attempt in range(8):
        with socket.create_connection(("127.0.0.1", port)) as s:
            s.sendall(f"object-{k}".encode())
            data = b""
            while part := s.recv(4096):
                data += part
        if data:
            return data
        time.sleep(wait)
    raise RuntimeError(f"object {k} not answered")


srv = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=serve, args=(srv,), daemon=True).start()
size = 0
for k in range(230):
    size += len(ask(srv.getsockname()[1], k))
    if k % 25 == 0:
        print(k, size, flush=True)
print("bytes", size)
