"""Defect class of wafers from 64 process measurements; progress goes to a local tracker."""
import json
import multiprocessing
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

N_WAFERS = 512 * 65
BATCH = 512
EPOCHS = 19


class Records(BaseHTTPRequestHandler):
    def do_POST(self):
        json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(0.006)  # the tracker commits each request to its database
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


def serve(ports):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Records)
    ports.put(server.server_address[1])
    server.serve_forever()


class Tracker:
    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}/log"
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        self.waiting = []

    def log(self, step, loss):
        self.waiting.append({"step": step, "loss": loss})
        self.flush()

    def flush(self):
        body = json.dumps(self.waiting).encode()
        self.opener.open(urllib.request.Request(self.url, body)).close()
        self.waiting = []


class Wafers(Dataset):
    def __init__(self, rng):
        self.y = rng.integers(0, 8, N_WAFERS)
        centres = rng.normal(0, 0.6, (8, 64))
        scale = rng.uniform(0.5, 50.0, 64)
        self.x = ((centres[self.y] + rng.normal(size=(N_WAFERS, 64))) * scale).astype(np.float32)
        self.mean = torch.from_numpy(self.x.mean(0))
        self.std = torch.from_numpy(self.x.std(0))

    def __len__(self):
        return N_WAFERS

    def __getitem__(self, index):
        x = (torch.from_numpy(self.x[index]) - self.mean) / self.std
        return x, torch.tensor(self.y[index])


def main():
    ports = multiprocessing.Queue()
    server = multiprocessing.Process(target=serve, args=(ports,), daemon=True)
    server.start()
    tracker = Tracker(ports.get())
    torch.manual_seed(0)
    data = Wafers(np.random.default_rng(4))
    loader = DataLoader(data, batch_size=BATCH, shuffle=True)
    model = nn.Sequential(
        nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 8)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    step = 0
    for epoch in range(EPOCHS):
        correct = 0
        for x, y in loader:
            output = model(x)
            loss = nn.functional.cross_entropy(output, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            tracker.log(step, loss.item())
            correct += (output.argmax(1) == y).sum().item()
        if epoch % 6 == 0:
            print(f"epoch {epoch:2d}  accuracy {correct / N_WAFERS:.4f}", flush=True)
    server.terminate()
    print(f"{step} steps, final accuracy {correct / N_WAFERS:.4f}")


if __name__ == "__main__":
    main()
