"""Solve many small systems of equations, on a GPU if there is one."""

from __future__ import annotations

import argparse
import time

import torch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", type=int, default=1000)
    parser.add_argument("--size", type=int, default=8)
    parser.add_argument("--together", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    shape = (options.systems, options.size)
    matrices = torch.randn(*shape, options.size, device=device)
    matrices += 10 * torch.eye(options.size, device=device)
    wanted = torch.randn(*shape, 1, device=device)
    steps, began_s = 0, time.monotonic()
    first_s = began_s
    while time.monotonic() - began_s < options.seconds:
        if options.together:
            solved = torch.linalg.solve(matrices, wanted)
        else:
            solved = torch.stack(
                [torch.linalg.solve(*pair) for pair in zip(matrices, wanted, strict=True)]
            )
        mean = solved.mean().item()
        if steps == 0:
            first_s = time.monotonic()
        steps += 1
    elapsed_s = max(time.monotonic() - first_s, 1e-6)
    print(f"{steps} steps, mean {mean:.3g}, {(steps - 1) / elapsed_s:.3f} steps/s")


if __name__ == "__main__":
    main()
