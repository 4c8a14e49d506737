"""Daily extremes from digitised thermograph strips that are kept in one zip archive."""
import os
import tempfile
import zipfile
from datetime import datetime

import numpy as np

NOTES = 6000
STRIPS = 200
READINGS = 2400


def make_archive(path):
    """Many small note cards of the observers and some long strips."""
    rng = np.random.default_rng(1911)
    clock = ["%02d:%02d:%02d" % (s // 3600, s // 60 % 60, s % 60) for s in range(0, 86400, 36)]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for k in range(NOTES):
            archive.writestr("notes/%02d/card_%05d.txt" % (k % 40, k), "card %d, sky %d\n" % (k, k * 7 % 9))
            if k % (NOTES // STRIPS) == 0:
                strip = k // (NOTES // STRIPS)
                date = "1911-%02d-%02d" % (1 + strip // 28, 1 + strip % 28)
                hours = np.arange(READINGS) / 100.0
                wave = 10 + 6 * np.sin((hours - 9) / 24 * 2 * np.pi) - 4 * np.cos(strip / 30)
                value = wave + np.cumsum(rng.normal(0, 0.03, READINGS))
                text = "\n".join("%s %s\t%.2f" % (date, c, v) for c, v in zip(clock, value.tolist()))
                archive.writestr("strips/strip_%04d.tsv" % strip, text + "\n")


class StripArchive:
    def __init__(self, path):
        self.path = path
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
        self.strips = sorted(name for name in names if name.startswith("strips/"))
        self.cards = len(names) - len(self.strips)

    def read(self, name):
        with zipfile.ZipFile(self.path) as archive:
            text = archive.read(name).decode()
        times, values = [], []
        for line in text.splitlines():
            stamp, value = line.split("\t")
            times.append(datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S"))
            values.append(float(value))
        return times, np.array(values)


def extremes(times, values):
    """Highest and lowest smoothed temperature and their hours."""
    kernel = np.hanning(51)
    smooth = np.convolve(values, kernel / kernel.sum(), mode="valid")
    high, low = int(smooth.argmax()) + 25, int(smooth.argmin()) + 25
    return (smooth.max(), smooth.min(),
            times[high].hour + times[high].minute / 60, times[low].hour + times[low].minute / 60)


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "station.zip")
        make_archive(path)
        archive = StripArchive(path)
        rows = [extremes(*archive.read(name)) for name in archive.strips]
    table = np.array(rows)
    print("strips: %d, cards: %d" % (len(archive.strips), archive.cards))
    print("mean maximum %.2f at %.1f h" % (table[:, 0].mean(), table[:, 2].mean()))
    print("mean minimum %.2f at %.1f h" % (table[:, 1].mean(), table[:, 3].mean()))
    print("largest daily range %.2f" % (table[:, 0] - table[:, 1]).max())


if __name__ == "__main__":
    main()
