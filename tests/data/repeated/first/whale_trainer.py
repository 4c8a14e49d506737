"""
verdict: set
stack:
  Trainer(load_calls("calls.npz"), rate=4000).fit(epochs=100)
  self.run_epoch(epoch)
  self.features(call["wave"])
  signal.cwt(x, signal.morlet2, self.widths)
call: self.features(call["wave"])
loop: for epoch in range(epochs)
why: the wavelet transform of each call is the same in each epoch, because neither the calls nor the widths change
"""
import numpy as np
from scipy import signal
from sklearn.linear_model import SGDClassifier


def load_calls(path):
    z = np.load(path)
    return [{"wave": w, "species": int(s)} for w, s in zip(z["waves"], z["species"])]


class Trainer:
    def __init__(self, calls, rate):
        self.calls = calls
        self.rate = rate
        self.widths = rate * 6 / (2 * np.pi * np.geomspace(20, 1000, 48))
        self.classes = sorted({c["species"] for c in calls})
        self.model = SGDClassifier(loss="log_loss", learning_rate="adaptive", eta0=0.01)
        self.log = []

    def features(self, x):
        power = np.abs(signal.cwt(x, signal.morlet2, self.widths)) ** 2
        bands = np.log(power.mean(axis=1) + 1e-9)
        return np.concatenate([bands, power.argmax(axis=1) / self.rate])

    def run_epoch(self, number):
        right = 0
        for call in self.calls:
            f = self.features(call["wave"])[None, :]
            if number > 0:
                right += self.model.predict(f)[0] == call["species"]
            self.model.partial_fit(f, [call["species"]], classes=self.classes)
        return right / len(self.calls)

    def fit(self, epochs):
        for epoch in range(epochs):
            self.log.append(self.run_epoch(epoch))
        return self.model


if __name__ == "__main__":
    Trainer(load_calls("calls.npz"), rate=4000).fit(epochs=100)
