"""
verdict: same
stack:
  main(build_parser().parse_args())
  roi_means(bold, args.atlas)
  read_labels(atlas_path)
  f["labels"][()]
call: read_labels(atlas_path)
loop: for subject in subjects
why: the atlas is read and unpacked from the same file for each subject
"""
import argparse
import os

import h5py
import numpy as np


def read_labels(filename):
    with h5py.File(filename, "r") as f:
        labels = f["labels"][()]
        keep = np.isin(labels, f.attrs["cortical"])
    return np.where(keep, labels, 0)


def roi_means(volume, atlas_path):
    labels = read_labels(atlas_path)
    ids = np.unique(labels)[1:]
    return np.stack([volume[labels == i].mean(axis=0) for i in ids])


def read_bold(folder, subject):
    with h5py.File(os.path.join(folder, subject + ".h5"), "r") as h:
        return h["bold"][...].astype(np.float32)


def build_parser():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", default="bold")
    parser.add_argument("--atlas", default="atlas.h5")
    parser.add_argument("--subjects", default="subjects.txt")
    return parser


def main(args):
    with open(args.subjects) as listing:
        subjects = listing.read().split()
    connectomes = []
    for subject in subjects:
        bold = read_bold(args.folder, subject)
        series = roi_means(bold, args.atlas)
        connectomes.append(np.corrcoef(series))
    np.save("connectomes.npy", np.stack(connectomes))


if __name__ == "__main__":
    main(build_parser().parse_args())
