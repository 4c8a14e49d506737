"""Training loop plus a snapshot thread; both use the lock of the weights and that of the history."""
import json
import os
import tempfile
import threading
import time

import torch
from torch import nn

weights_lock = threading.Lock()
history_lock = threading.Lock()
history = []


class Snapshotter(threading.Thread):
    def __init__(self, model, folder):
        super().__init__(name="snapshotter", daemon=True)
        self.model, self.folder = model, folder

    def run(self):
        n = 0
        while True:
            time.sleep(30)
            with history_lock:
                with open(os.path.join(self.folder, "history.json"), "w") as f:
                    for row in history[-40:]:
                        f.write(json.dumps(row) + "\n")
                        f.flush()
                        time.sleep(0.2)  # home directory over the network
                with weights_lock:
                    state = {k: v.clone() for k, v in self.model.state_dict().items()}
            torch.save(state, os.path.join(self.folder, f"snap_{n}.pt"))
            n += 1


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(50, 200), nn.GELU(), nn.Linear(200, 5))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    Snapshotter(model, tempfile.mkdtemp(prefix="snap_")).start()
    for step in range(1_000_000):
        time.sleep(0.03)
        x = torch.randn(32, 50)
        y = x[:, :5].argmax(1)
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        with weights_lock:
            opt.step()
            if step % 10 == 0:
                with history_lock:
                    history.append({"step": step, "loss": round(loss.item(), 4)})
        if step % 100 == 0:
            print(f"step {step:6d}  loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
