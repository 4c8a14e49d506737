"""Hyperparameters of an exact Gaussian process for varve thickness in lake cores.

The years are dated to the day, so neighbouring rows of the covariance are nearly equal
and the noise is small: double precision is needed for the factorisation.
"""
import math
import sys
import time

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
ROWS = 8192 if device == "cuda" else 300


class VarveProcess(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.log_scale = torch.nn.Parameter(torch.tensor([0.0, 1.5], dtype=torch.float64))
        self.log_size = torch.nn.Parameter(torch.tensor([0.0, -1.0], dtype=torch.float64))
        self.log_noise = torch.nn.Parameter(torch.tensor(-5.0, dtype=torch.float64))

    def covariance(self, gap2):
        short, long = self.log_scale.exp()
        a, b = self.log_size.exp()
        k = a * torch.exp(gap2 * (-0.5 / short**2))
        return k.add_(b * torch.exp(gap2 * (-0.5 / long**2)))

    def forward(self, gap2, y):
        k = self.covariance(gap2)
        k.diagonal().add_(self.log_noise.exp())
        return k


def objective_and_slope(process, gap2, y):
    """Negative log likelihood; its slope in K comes from one factorisation."""
    k = process(gap2, y)
    with torch.no_grad():
        factor = torch.linalg.cholesky(k)
        weights = torch.cholesky_solve(y[:, None], factor)
        half_logdet = factor.diagonal().log().sum()
        value = 0.5 * (y @ weights[:, 0]) + half_logdet + 0.5 * len(y) * math.log(2 * math.pi)
        slope = torch.cholesky_inverse(factor).sub_(weights @ weights.T).mul_(0.5)
    k.backward(slope)
    return value / len(y)


def main():
    torch.manual_seed(5)
    depth = torch.sort(torch.rand(ROWS, dtype=torch.float64, device=device) * 400.0).values
    y = torch.sin(depth / 3.0) + 0.4 * torch.sin(depth / 0.7)
    y = y + 0.08 * torch.randn(ROWS, dtype=torch.float64, device=device)
    gap2 = (depth[:, None] - depth[None, :]).square_()
    process = VarveProcess().to(device)
    opt = torch.optim.Adam(process.parameters(), lr=0.03)

    budget_s = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    steps, value = 0, float("nan")
    begin = time.perf_counter()
    while time.perf_counter() - begin < budget_s:
        opt.zero_grad(set_to_none=True)
        value = objective_and_slope(process, gap2, y).item()
        opt.step()
        steps += 1
        if not math.isfinite(value):
            raise SystemExit("the covariance is not positive definite")
    print(f"done: {steps} steps, loss {value:.3f}")


if __name__ == "__main__":
    main()
