"""Which complaint does a herbal remedy treat? Vectors come from a lexicon service."""
import json
import multiprocessing
import random
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import torch
from torch import nn

REMEDIES, VARIANTS, EPOCHS, COMPLAINTS = 220, 120, 6, 5
PARTS = "root leaf bark seed flower oil".split()


class Lexicon(BaseHTTPRequestHandler):
    def do_GET(self):
        number = int(self.path.rsplit("/", 1)[1])
        time.sleep(0.008)  # stands for the database of the lexicon
        rng = np.random.default_rng(number)
        vector = rng.normal(0, 1, 48) + 0.8 * np.sin(np.arange(48) * (1 + number % COMPLAINTS))
        body = json.dumps(vector.round(5).tolist()).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def serve(channel):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Lexicon)
    channel.send(server.server_address[1])
    server.serve_forever()


def vector_of(port, number):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/remedy/{number}") as answer:
        return json.loads(answer.read())


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            cost = before if letter == other else 1 + min(before, row[j], row[j - 1])
            before, row[j] = row[j], cost
    return row[-1]


def closest(spelling, names):
    return min(range(len(names)), key=lambda n: edit_distance(spelling, names[n]))


def main():
    channel, far_end = multiprocessing.Pipe()
    service = multiprocessing.Process(target=serve, args=(far_end,), daemon=True)
    service.start()
    port = channel.recv()
    rng = random.Random(18)
    torch.manual_seed(18)
    names = ["".join(rng.choices("aeioulmnrst", k=rng.randint(8, 14))) + " " + rng.choice(PARTS) for _ in range(REMEDIES)]
    truth = [rng.randrange(REMEDIES) for _ in range(VARIANTS)]
    spellings = []
    for number in truth:
        letters = list(names[number])
        for place in rng.sample(range(len(letters)), 3):
            letters[place] = rng.choice("aeiouy")
        spellings.append("".join(letters))
    complaint = torch.arange(REMEDIES) % COMPLAINTS
    net = nn.Sequential(nn.Linear(48, 256), nn.ReLU(), nn.Linear(256, COMPLAINTS))
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(EPOCHS):
        vectors = torch.tensor([vector_of(port, n) for n in range(REMEDIES)])
        for _ in range(500):
            rows = torch.randint(REMEDIES, (64,))
            noisy = vectors[rows] + 0.3 * torch.randn(64, 48)
            loss = nn.functional.cross_entropy(net(noisy), complaint[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        found = torch.tensor([closest(s, names) for s in spellings])
        with torch.no_grad():
            guess = net(vectors[found]).argmax(1)
        hits = (guess == complaint[torch.tensor(truth)]).float().mean()
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}, variants right {hits:.3f}")
    service.terminate()
    service.join()


if __name__ == "__main__":
    main()
