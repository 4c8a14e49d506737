"""Converts recordings one after another with an external tool (here: a small Python child)."""
import subprocess
import sys
import time

TOOL = r"""
import sys, time, zlib
block = bytes(range(256)) * 400
for frame in range(int(sys.argv[1])):
    crc = zlib.crc32(block, frame)
    print(f"frame {frame:06d} crc {crc:08x} converted ok")
    time.sleep(0.002)
"""


def frames_of(recording):
    return 6000 if recording == 60 else 60 + recording % 7


def convert(recording):
    proc = subprocess.Popen([sys.executable, "-c", TOOL, str(frames_of(recording))],
                            stdout=subprocess.PIPE, text=True)
    if proc.wait() != 0:
        raise RuntimeError(f"recording {recording} failed with {proc.returncode}")
    lines = proc.stdout.read().splitlines()
    proc.stdout.close()
    return lines[-1]


def main():
    t0 = time.time()
    for recording in range(5000):
        last = convert(recording)
        time.sleep(0.2)
        if recording % 5 == 0:
            print(f"{time.time() - t0:6.1f} s  recording {recording}: {last}", flush=True)


if __name__ == "__main__":
    main()
