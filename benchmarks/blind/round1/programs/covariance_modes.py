# Leading modes of big random covariance matrices
import numpy as np

rng = np.random.default_rng(0)
for k in range(9):
    a = rng.normal(size=(1700, 1700))
    w, v = np.linalg.eigh(a @ a.T)
    print(k, w[-3:].round(1), flush=True)
