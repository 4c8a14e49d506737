"""Geocode the address list. The service's terms allow four requests per second per key."""
import socket
import threading
import time

last = [0.0]


def service(sock):
    while True:
        c, _ = sock.accept()
        with c:
            q = c.recv(200)
            now = time.monotonic()
            if now - last[0] < 0.24:
                c.sendall(b"429 too many")
            else:
                c.sendall(b"200 %d" % (sum(q) % 180))
            last[0] = now


srv = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=service, args=(srv,), daemon=True).start()
found = []
slot = time.monotonic()
for k in range(100):
    time.sleep(max(0.0, slot - time.monotonic()))
    slot = time.monotonic() + 0.25
    with socket.create_connection(srv.getsockname()) as s:
        s.sendall(f"{k} Station Road".encode())
        code, value = s.recv(100).split(maxsplit=1)
    if code == b"200":
        found.append(int(value))
    if k % 10 == 0:
        print(k, code.decode(), value.decode(), flush=True)
print(len(found), "found")
