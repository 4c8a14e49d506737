"""Fetch ensemble members from the slow archive, as many at once as it allows (8)."""
import http.server
import socketserver
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

gate = threading.Semaphore(8)


class Archive(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with gate:
            time.sleep(0.9)
        body = self.path.encode() * 4000
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *a):
        pass


class Srv(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


def main():
    s = Srv(("127.0.0.1", 0), Archive)
    threading.Thread(target=s.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{s.server_port}/member/"

    def one(k):
        with urllib.request.urlopen(url + str(k)) as r:
            return len(r.read())

    got = 0
    with ThreadPoolExecutor(8) as ex:
        for k, n in enumerate(ex.map(one, range(200))):
            got += n
            if k % 25 == 0:
                print(k, got, flush=True)


if __name__ == "__main__":
    main()
