"""
verdict: none
stack:
  table(STEPS)
  chudnovsky()
  Decimal(10005).sqrt()
why: the precision of the decimal context is changed in each iteration, so the call without arguments gives another number
"""
from decimal import Decimal, getcontext

STEPS = [10**k for k in range(2, 6)]


def split(a, b):
    if b - a == 1:
        if a == 0:
            p = q = 1
        else:
            p = (6 * a - 5) * (2 * a - 1) * (6 * a - 1)
            q = a**3 * 640320**3 // 24
        t = p * (13591409 + 545140134 * a)
        return p, q, -t if a % 2 else t
    middle = (a + b) // 2
    p1, q1, t1 = split(a, middle)
    p2, q2, t2 = split(middle, b)
    return p1 * p2, q1 * q2, q2 * t1 + p1 * t2


def chudnovsky(guard=10):
    digits = getcontext().prec
    _, q, t = split(0, digits // 14 + 2)
    return Decimal(q * 426880) * Decimal(10005).sqrt() / Decimal(t)


def precision(digits):
    getcontext().prec = digits


def table(steps):
    rows = []
    previous = Decimal(3)
    for digits in steps:
        precision(digits)
        value = chudnovsky()
        rows.append((digits, f"{abs(value - previous):.3e}"))
        previous = value
    return rows


if __name__ == "__main__":
    for digits, change in table(STEPS):
        print(digits, change)
