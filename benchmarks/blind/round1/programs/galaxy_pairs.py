"""Count galaxy pairs closer than r and build the groups."""
import numpy as np
from scipy.spatial import cKDTree

N = 26000
rng = np.random.default_rng(11)
pos = rng.random((N, 3))
tree = cKDTree(pos)

groups = []
done = []
for i in range(N):
    if i in done:
        continue
    todo = [i]
    mine = set()
    while todo:
        k = todo.pop()
        if k in mine:
            continue
        mine.add(k)
        todo.extend(tree.query_ball_point(pos[k], 0.016))
    done.extend(mine)
    groups.append(len(mine))
    if len(groups) % 1000 == 0:
        print(len(groups), "groups", flush=True)
print(len(groups), "groups, largest", max(groups))
