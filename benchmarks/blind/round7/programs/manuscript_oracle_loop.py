"""Active learning of scribal hands; a palaeographer's desk answers each question."""
import json
import multiprocessing
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF

FOLIOS, STROKES, QUESTIONS = 900, 10, 40


def hands():
    rng = np.random.default_rng(33)
    x = rng.normal(0, 1, (FOLIOS, STROKES))
    hand = (x[:, 0] + x[:, 1] ** 2 - 0.8 * x[:, 2] + rng.normal(0, 0.2, FOLIOS) > 0.8).astype(int)
    return x, hand


class Desk(BaseHTTPRequestHandler):
    """Looking at one folio takes the expert a while; only one can be looked at."""

    def do_GET(self):
        folio = int(self.path.rsplit("/", 1)[1])
        time.sleep(0.35)
        body = json.dumps({"hand": int(self.server.truth[folio])}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def open_desk(pipe):
    server = HTTPServer(("127.0.0.1", 0), Desk)
    server.truth = hands()[1]
    pipe.send(server.server_address[1])
    server.serve_forever()


def ask(port, folio):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/folio/{folio}") as answer:
        return json.load(answer)["hand"]


def main():
    ours, theirs = multiprocessing.Pipe()
    desk = multiprocessing.get_context("fork").Process(
        target=open_desk, args=(theirs,), daemon=True)
    desk.start()
    port = ours.recv()
    x, truth = hands()
    known = {int(i): ask(port, int(i)) for i in np.argsort(x[:, 0])[[0, 200, 450, 700, 899]]}
    for question in range(1, QUESTIONS + 1):
        rows = np.array(sorted(known))
        labels = np.array([known[r] for r in rows])
        model = GaussianProcessClassifier(RBF(2.0), random_state=0).fit(x[rows], labels)
        doubt = -np.abs(model.predict_proba(x)[:, 1] - 0.5)
        doubt[rows] = -1.0
        folio = int(np.argmax(doubt))
        known[folio] = ask(port, folio)
        if question % 10 == 0:
            accuracy = np.mean(model.predict(x) == truth)
            print(f"{question} questions: accuracy {accuracy:.3f}")
    desk.terminate()
    desk.join()


if __name__ == "__main__":
    main()
