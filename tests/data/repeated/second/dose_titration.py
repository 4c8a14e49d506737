"""
verdict: none
stack:
  titrate(Patient(weight=71.0), target=2.5)
  run_week()
  solve_ivp(kinetics, (0.0, 168.0), state, args=(dose,), max_step=0.05)
why: simulate_week has no arguments, but adjust changes dose and the week itself changes state through nonlocal
"""
from dataclasses import dataclass

from scipy.integrate import solve_ivp


@dataclass
class Patient:
    weight: float
    clearance: float = 0.3


def make_model(patient, start_dose):
    dose = start_dose
    state = [0.0, 0.0]

    def kinetics(t, y, amount):
        gut, blood = y
        intake = amount if t % 24 < 0.5 else 0.0
        return [intake - 0.9 * gut, 0.9 * gut / patient.weight - patient.clearance * blood]

    def simulate_week():
        nonlocal state
        solution = solve_ivp(kinetics, (0.0, 168.0), state, args=(dose,), max_step=0.05)
        state = solution.y[:, -1].tolist()
        return float(solution.y[1].mean())

    def adjust(ratio):
        nonlocal dose
        dose *= min(max(ratio, 0.7), 1.4)
        return dose

    return simulate_week, adjust


def titrate(patient, target, weeks=30):
    run_week, adjust = make_model(patient, start_dose=5.0)
    path = []
    for week in range(weeks):
        level = run_week()
        path.append((week, level, adjust(target / level)))
    return path


if __name__ == "__main__":
    for row in titrate(Patient(weight=71.0), target=2.5):
        print(*row)
