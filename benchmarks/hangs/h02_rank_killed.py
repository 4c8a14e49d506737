"""Data-parallel training: starts 3 ranks (no torchrun); each forks a process that writes its metrics."""
import ctypes
import multiprocessing as mp
import os
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import time
from datetime import timedelta

WORLD = 3


def metrics_writer(q, path, launcher):
    with open(path, "a") as out:
        while os.path.exists(f"/proc/{launcher}"):
            try:
                step, loss = q.get(timeout=5)
            except queue.Empty:
                continue
            print(step, loss, file=out, flush=True)


def train(rank):
    import torch
    import torch.distributed as dist
    launcher = os.getppid()
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=WORLD, timeout=timedelta(days=7))
    dist.barrier()
    q = mp.Queue()
    path = os.path.join(os.environ["RUN_DIR"], f"metrics_{rank}.txt")
    mp.Process(target=metrics_writer, args=(q, path, launcher), daemon=True).start()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(32, 128), torch.nn.Tanh(), torch.nn.Linear(128, 1))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    gen = torch.Generator().manual_seed(rank)
    for step in range(1, 100_000):
        time.sleep(0.03)  # read the batch
        x = torch.randn(32, 32, generator=gen)
        loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        if rank == 2 and step == 650:
            os.kill(os.getpid(), signal.SIGKILL)  # what the OOM killer would do
        for p in model.parameters():
            dist.all_reduce(p.grad)
            p.grad /= WORLD
        opt.step()
        q.put((step, loss.item()))
        if rank == 0 and step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


def launch():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with tempfile.TemporaryDirectory() as run_dir:
        env = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RUN_DIR=run_dir, GLOO_SOCKET_IFNAME="lo")
        ranks = [subprocess.Popen([sys.executable, __file__, str(r)], env=env) for r in range(WORLD)]
        sys.exit(max(abs(p.wait()) for p in ranks))


if __name__ == "__main__":
    train(int(sys.argv[1])) if len(sys.argv) > 1 else launch()
