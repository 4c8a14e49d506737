"""Two-compartment perfusion of a kidney slice for a table of flow and extraction values."""
import numpy as np
from joblib import Parallel, delayed

SIDE = 160
FRAMES = 400
FLOWS = np.linspace(0.6, 3.4, 10)
EXTRACTIONS = np.linspace(0.05, 0.3, 6)
STEP = 0.25


def anatomy():
    yy, xx = np.mgrid[0:SIDE, 0:SIDE]
    radius = np.hypot((xx - SIDE / 2) / 1.0, (yy - SIDE / 2) / 1.4)
    cortex = np.exp(-((radius - 42.0) / 9.0) ** 2)
    medulla = np.exp(-(radius / 30.0) ** 2)
    return cortex, medulla


def arterial_input():
    t = np.arange(FRAMES) * STEP
    bolus = np.where(t > 6.0, (np.maximum(t - 6.0, 0.0) / 4.0) * np.exp(1.0 - np.maximum(t - 6.0, 0.0) / 4.0), 0.0)
    recirculation = 0.12 * (1.0 - np.exp(-np.maximum(t - 14.0, 0.0) / 9.0))
    return bolus + recirculation


def simulate(flow, extraction):
    cortex, medulla = anatomy()
    artery = arterial_input()
    plasma = np.zeros((SIDE, SIDE))
    tubule = np.zeros((SIDE, SIDE))
    inflow = flow * (cortex + 0.35 * medulla) / 10.0
    filtered = extraction * cortex / 10.0
    drain = 0.02 + 0.03 * medulla
    frames = np.empty((FRAMES, SIDE, SIDE))
    for i in range(FRAMES):
        uptake = inflow * artery[i] - inflow * plasma - filtered * plasma
        plasma = plasma + STEP * uptake
        tubule = tubule + STEP * (filtered * plasma - drain * tubule)
        frames[i] = plasma + tubule + 1e-3 * np.sqrt(plasma * plasma + tubule)
    return frames


def curve_and_peak(frames):
    return frames.mean(axis=(1, 2)), float(frames.max())


def sample(flow, extraction):
    return simulate(flow, extraction)


def describe(curve):
    t = np.arange(FRAMES) * STEP
    return t[int(np.argmax(curve))], float(STEP * curve.sum())


def main():
    table = [(f, e) for f in FLOWS for e in EXTRACTIONS]
    workers = Parallel(n_jobs=2, return_as="generator")
    results = []
    for frames, (flow, extraction) in zip(workers(delayed(sample)(f, e) for f, e in table), table):
        curve, peak = curve_and_peak(frames)
        when, area = describe(curve)
        results.append((flow, extraction, peak, when, area))
    for flow, extraction, peak, when, area in results[::13]:
        print(f"flow {flow:.2f} extraction {extraction:.2f}: peak {peak:.4f} at {when:.1f} s, area {area:.3f}")
    print(f"{len(results)} settings, largest area {max(r[4] for r in results):.3f}")


if __name__ == "__main__":
    main()
