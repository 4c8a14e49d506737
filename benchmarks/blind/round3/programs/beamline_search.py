"""Find the best sample position on a beamline: every exposure decides where to look next.

The detector is a separate server process that is reached over a local socket; one exposure takes
most of a second, as on the real instrument.
"""
import json
import socket
import socketserver
import subprocess
import sys
import time

import numpy as np

if sys.argv[1:] != ["serve"]:      # the detector process needs no torch
    import torch

EXPOSURES, EXPOSURE_S = 30, 0.7


def serve():
    hidden = np.array([0.23, -0.41])

    class Shot(socketserver.StreamRequestHandler):
        def handle(self):
            rng = np.random.default_rng(12)
            for line in self.rfile:
                ask = json.loads(line)
                if ask.get("stop"):
                    break
                time.sleep(EXPOSURE_S)
                d = np.array(ask["at"]) - hidden
                flux = np.exp(-3 * d @ d) + 0.3 * np.exp(-20 * ((d - 0.5) ** 2).sum()) + 0.01 * rng.normal()
                self.wfile.write((json.dumps({"flux": float(flux)}) + "\n").encode())

    with socketserver.TCPServer(("127.0.0.1", 0), Shot) as server:
        print(server.server_address[1], flush=True)
        server.handle_request()


def kernel(a, b, scale):
    return torch.exp(-0.5 * ((a[:, None] - b[None]) ** 2).sum(-1) / scale ** 2)


def next_position(xs, ys, grid):
    """GP posterior with a length scale fitted by gradient ascent, then upper confidence bound."""
    x, y = torch.tensor(xs), torch.tensor(ys)
    y = (y - y.mean()) / (y.std() + 1e-6)
    log_scale = torch.tensor(-1.0, dtype=torch.float64, requires_grad=True)
    opt = torch.optim.Adam([log_scale], lr=0.1)
    for _ in range(40):
        k = kernel(x, x, log_scale.exp()) + 1e-3 * torch.eye(len(x))
        chol = torch.linalg.cholesky(k)
        alpha = torch.cholesky_solve(y[:, None], chol)
        nll = 0.5 * (y[:, None] * alpha).sum() + chol.diagonal().log().sum()
        opt.zero_grad()
        nll.backward()
        opt.step()
    with torch.no_grad():
        s = log_scale.exp()
        chol = torch.linalg.cholesky(kernel(x, x, s) + 1e-3 * torch.eye(len(x)))
        cross = kernel(grid, x, s)
        mean = cross @ torch.cholesky_solve(y[:, None], chol)[:, 0]
        var = 1 - torch.linalg.solve_triangular(chol, cross.T, upper=False).pow(2).sum(0)
    return grid[int((mean + 1.5 * var.clamp_min(0).sqrt()).argmax())].tolist()


def main():
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    server = subprocess.Popen([sys.executable, __file__, "serve"], stdout=subprocess.PIPE, text=True)
    port = int(server.stdout.readline())
    axis = torch.linspace(-1, 1, 60)
    grid = torch.cartesian_prod(axis, axis)
    xs, ys = [], []
    with socket.create_connection(("127.0.0.1", port)) as link:
        reply = link.makefile()
        at = [0.0, 0.0]
        for i in range(EXPOSURES):
            link.sendall((json.dumps({"at": at}) + "\n").encode())
            ys.append(json.loads(reply.readline())["flux"])
            xs.append(at)
            at = next_position(xs, ys, grid) if i >= 3 else [[0.7, 0.7], [-0.7, 0.7], [0.7, -0.7], [-0.7, -0.7]][i]
        link.sendall(b'{"stop": true}\n')
    server.wait()
    best = int(np.argmax(ys))
    print(f"best flux {ys[best]:.2f} at ({xs[best][0]:.2f}, {xs[best][1]:.2f}) after {EXPOSURES} exposures")


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["serve"] else main()
