# Implicit heat conduction in a soil column section, Crank-Nicolson
import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla

NX = NY = 110
DT = 0.1


def laplacian(nx, ny):
    ex, ey = np.ones(nx), np.ones(ny)
    lx = sp.diags([ex[:-1], -2 * ex, ex[:-1]], [-1, 0, 1])
    ly = sp.diags([ey[:-1], -2 * ey, ey[:-1]], [-1, 0, 1])
    return sp.kron(sp.eye(ny), lx) + sp.kron(ly, sp.eye(nx))


lap = laplacian(NX, NY)
eye = sp.eye(NX * NY)
left = (eye - 0.5 * DT * lap).tocsc()
right = (eye + 0.5 * DT * lap).tocsr()

u = np.zeros(NX * NY)
lu = sla.splu(left)
u[NX * NY // 2] = 1000.0
moist = np.linspace(0, 1, NX * NY)
lap = lap.tocsr()
for step in range(480):
    source = np.sin(step / 20) * np.exp(-np.arange(NX * NY) / NX)
    u = lu.solve(right @ u + DT * source)
    for _ in range(150):  # moisture moves faster than heat
        moist = moist + 0.002 * (lap @ moist)
    if step % 40 == 0:
        print(f"t={step * DT:6.1f} max={u.max():.4f} moisture={moist.mean():.4f}", flush=True)
