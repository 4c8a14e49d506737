"""Locate volcanic explosions with a small infrasound array.

For each event the delays between all pairs of microphones are measured on
band-passed pressure records, and a slowness grid is searched for the beam.
"""
import itertools

import numpy as np
from scipy import signal

RATE = 100.0
SAMPLES = 30000
EVENTS = 8
MICS = np.array([[0.0, 0.0], [180.0, 40.0], [-60.0, 170.0],
                 [-150.0, -110.0], [90.0, -160.0], [20.0, 95.0]])


def synthetic_event(number):
    rng = np.random.default_rng(500 + number)
    azimuth = rng.uniform(0, 2 * np.pi)
    slowness = np.array([np.sin(azimuth), np.cos(azimuth)]) / 340.0
    source = np.cumsum(rng.normal(size=SAMPLES + 800))
    source -= signal.savgol_filter(source, 401, 2)
    records = []
    for position in MICS:
        shift = int(round(position @ slowness * RATE))
        trace = source[400 - shift:400 - shift + SAMPLES]
        records.append(trace + 0.4 * rng.normal(size=SAMPLES))
    return np.array(records), np.degrees(azimuth)


def bandpass(records):
    sos = signal.butter(4, [0.5, 12.0], btype="band", fs=RATE, output="sos")
    out = signal.sosfiltfilt(sos, records, axis=1)
    return out / out.std(axis=1, keepdims=True)


def pair_delay(first, second):
    corr = np.correlate(first, second, mode="full")
    best = int(np.argmax(corr))
    return (best - (SAMPLES - 1)) / RATE, corr[best] / SAMPLES


def plane_wave(delays):
    rows, values = [], []
    for (i, j), (delay, weight) in delays.items():
        rows.append((MICS[i] - MICS[j]) * weight)
        values.append(delay * weight)
    slowness, *_ = np.linalg.lstsq(np.array(rows), np.array(values), rcond=None)
    return slowness


def beam_search(records, centre):
    best_power, best = -1.0, centre
    steps = np.linspace(-8e-4, 8e-4, 33)
    for dx in steps:
        for dy in steps:
            slowness = centre + (dx, dy)
            beam = np.zeros(SAMPLES)
            for trace, position in zip(records, MICS):
                shift = int(round(position @ slowness * RATE))
                beam += np.roll(trace, -shift)
            power = float(beam @ beam)
            if power > best_power:
                best_power, best = power, slowness
    return best, best_power / SAMPLES / len(MICS) ** 2


def main():
    errors = []
    for number in range(EVENTS):
        raw, truth = synthetic_event(number)
        records = bandpass(raw)
        delays = {}
        for i, j in itertools.combinations(range(len(MICS)), 2):
            delays[i, j] = pair_delay(records[i], records[j])
        centre = plane_wave(delays)
        slowness, power = beam_search(records, centre)
        azimuth = np.degrees(np.arctan2(slowness[0], slowness[1])) % 360
        errors.append(abs((azimuth - truth + 180) % 360 - 180))
        print(f"event {number}: azimuth {azimuth:6.1f} (true {truth:6.1f}), beam power {power:.3f}")
    print(f"mean azimuth error {np.mean(errors):.2f} degrees")


if __name__ == "__main__":
    main()
