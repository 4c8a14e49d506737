"""Geocodes addresses at a local service, one request each (no deep learning)."""
import ctypes
import json
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def serve():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    born = time.monotonic()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if time.monotonic() - born > 40:
                threading.Event().wait()  # its database is gone: accepts, never answers
            reply = json.dumps({"lat": body["id"] % 180 - 90, "lon": body["id"] % 360 - 180}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


def main():
    import requests
    service = subprocess.Popen([sys.executable, __file__, "serve"], stdout=subprocess.PIPE, text=True)
    url = f"http://127.0.0.1:{int(service.stdout.readline())}/geocode"
    session = requests.Session()
    session.trust_env = False
    south = 0
    for n in range(1_000_000):
        answer = session.post(url, json={"id": n, "street": f"Main Street {n}"}).json()
        south += answer["lat"] < 0
        time.sleep(0.07)
        if n % 50 == 0:
            print(f"{n} addresses, {south} in the south", flush=True)


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["serve"] else main()
