"""Moose and wolves on a lattice of forest patches, with exchange between the neighbours."""
import copy
import json
import logging
import math
import random

SIDE = 36
WEEKS = 950

log = logging.getLogger("moose_wolf")


def make_patches(seed):
    rng = random.Random(seed)
    patches = {}
    for row in range(SIDE):
        for column in range(SIDE):
            patches["%d,%d" % (row, column)] = {
                "browse": rng.uniform(0.4, 1.0),
                "moose": rng.uniform(1.0, 6.0),
                "wolves": rng.uniform(0.0, 0.6),
                "snow": 0.0,
            }
    return patches


def neighbours_of():
    table = {}
    for row in range(SIDE):
        for column in range(SIDE):
            around = ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1))
            table["%d,%d" % (row, column)] = ["%d,%d" % (r % SIDE, c % SIDE) for r, c in around]
    return table


def advance(patches, table, week):
    """All patches change at the same time: read the old state, write the new one."""
    old = copy.deepcopy(patches)
    snow = max(0.0, math.cos(2 * math.pi * week / 52))
    for name, patch in patches.items():
        before = old[name]
        moose, wolves, browse = before["moose"], before["wolves"], before["browse"]
        near = [old[other] for other in table[name]]
        moose_near = (near[0]["moose"] + near[1]["moose"] + near[2]["moose"] + near[3]["moose"]) / 4
        wolves_near = (near[0]["wolves"] + near[1]["wolves"] + near[2]["wolves"] + near[3]["wolves"]) / 4
        eaten = 0.05 * moose * wolves / (1 + 0.1 * moose)
        patch["browse"] = min(1.0, max(0.05, browse + 0.03 * (1 - snow) * (1 - browse) - 0.003 * moose))
        patch["moose"] = max(0.0, moose + 0.012 * moose * (browse - 0.3) - eaten + 0.05 * (moose_near - moose))
        patch["wolves"] = max(0.0, wolves + 0.25 * eaten - 0.02 * wolves + 0.1 * (wolves_near - wolves))
        patch["snow"] = snow
    log.debug("week %d: %s" % (week, json.dumps(patches, sort_keys=True)))


def main():
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    patches = make_patches(1959)
    table = neighbours_of()
    for week in range(WEEKS):
        advance(patches, table, week)
        if week % 150 == 0:
            moose = sum(patch["moose"] for patch in patches.values())
            wolves = sum(patch["wolves"] for patch in patches.values())
            log.info("week %4d: %.0f moose, %.1f wolves", week, moose, wolves)
    moose = [patch["moose"] for patch in patches.values()]
    mean = sum(moose) / len(moose)
    spread = math.sqrt(sum((m - mean) ** 2 for m in moose) / len(moose))
    print("patches: %d, weeks: %d" % (len(patches), WEEKS))
    print("moose per patch: %.3f +- %.3f" % (mean, spread))
    print("browse: %.3f" % (sum(patch["browse"] for patch in patches.values()) / len(patches)))


if __name__ == "__main__":
    main()
