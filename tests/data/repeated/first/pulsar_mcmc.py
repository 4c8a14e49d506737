"""
verdict: none
stack:
  main(20000)
  log_posterior(state, toas)
  np.linalg.slogdet(cov)
why: the state is a dict that propose() changes in place and undo() restores
"""
import numpy as np

RNG = np.random.default_rng(5)
SCALE = {"period": 1e-9, "log_amp": 0.1, "log_length": 0.1}


def read_toas(path="toas.txt"):
    t, err = np.loadtxt(path, unpack=True)
    return {"t": t, "err": err}


def log_posterior(params, data):
    t = data["t"]
    residual = t - params["period"] * np.round(t / params["period"])
    lag = np.abs(t[:, None] - t[None, :])
    cov = np.exp(2 * params["log_amp"] - lag / np.exp(params["log_length"]))
    cov += np.diag(data["err"] ** 2)
    sign, logdet = np.linalg.slogdet(cov)
    return -0.5 * (residual @ np.linalg.solve(cov, residual) + logdet)


def propose(params):
    name = RNG.choice(list(SCALE))
    old = params[name]
    params[name] += SCALE[name] * RNG.normal()
    return name, old


def undo(params, step):
    name, old = step
    params[name] = old


def main(steps):
    toas = read_toas()
    state = {"period": 0.0334, "log_amp": -9.0, "log_length": 3.0}
    current, kept = -np.inf, []
    for _ in range(steps):
        step = propose(state)
        new = log_posterior(state, toas)
        if np.log(RNG.random()) < new - current:
            current = new
        else:
            undo(state, step)
        kept.append(dict(state))
    return kept


if __name__ == "__main__":
    main(20000)
