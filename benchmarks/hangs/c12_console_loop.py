"""A console which answers questions; the other end of the pipe sends a line every 30 s."""
import subprocess
import sys
import time

QUESTIONS = ["alpha", "beta", "gamma", "alpha", "quit"]


def console():
    import numpy as np
    from sklearn.neighbors import NearestNeighbors
    rng = np.random.default_rng(0)
    table = rng.standard_normal((500, 16))
    index = NearestNeighbors(n_neighbors=3).fit(table)
    names = {"alpha": 1, "beta": 2, "gamma": 3}
    while True:
        try:
            word = input("> ").strip()
        except EOFError:
            break
        if word == "quit":
            break
        dist, near = index.kneighbors(table[names[word]][None] + 0.01)
        print(f"{word}: neighbours {near[0].tolist()} at {dist[0].round(3).tolist()}", flush=True)
    print("bye", flush=True)


def main():
    child = subprocess.Popen([sys.executable, __file__, "console"], stdin=subprocess.PIPE, text=True)
    for question in QUESTIONS:
        time.sleep(30)
        child.stdin.write(question + "\n")
        child.stdin.flush()
    child.stdin.close()
    sys.exit(child.wait())


if __name__ == "__main__":
    console() if sys.argv[1:] == ["console"] else main()
