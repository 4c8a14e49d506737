"""Record the pressure of the vacuum pump every second until the run is over.

The controller is a separate program that prints a new value once a second.
"""
import subprocess
import sys
import time

CONTROLLER = """
import random, sys, time
random.seed(0)
p = 1000.0
while True:
    p *= random.uniform(0.6, 0.8)
    sys.stdin.readline()
    print(f"{p:.6f}", flush=True)
"""

proc = subprocess.Popen([sys.executable, "-c", CONTROLLER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
start = time.time()
log = []
while time.time() - start < 25:
    proc.stdin.write("p?\n")
    proc.stdin.flush()
    log.append((time.time() - start, float(proc.stdout.readline())))
    print(f"{log[-1][0]:6.1f} s  {log[-1][1]:.4f} mbar", flush=True)
    time.sleep(1.0)
proc.terminate()
proc.wait()
print(len(log), "readings")
