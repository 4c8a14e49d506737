"""
verdict: none
stack:
  reference_volume(sys.argv[1], atlas="mni152.nii.gz")
  build_template(atlas, iterations)
  ndimage.gaussian_filter(smooth, 1.5)
why: the template is built for the first usable scan only, since the loop ends there
"""
import sys
from pathlib import Path

import nibabel as nib
import numpy as np
from scipy import ndimage


def build_template(path, rounds):
    smooth = nib.load(path).get_fdata()
    for _ in range(rounds):
        smooth = ndimage.gaussian_filter(smooth, 1.5)
        smooth /= smooth.max()
    return smooth


def usable(scan):
    header = scan.header
    return len(scan.shape) == 3 and min(header.get_zooms()[:3]) > 0.5


def reference_volume(folder, atlas, iterations=40):
    chosen = None
    for path in sorted(Path(folder).glob("*.nii.gz")):
        scan = nib.load(path)
        if not usable(scan):
            continue
        template = build_template(atlas, iterations)
        data = scan.get_fdata()
        factors = np.array(template.shape) / np.array(data.shape)
        chosen = path, ndimage.zoom(data, factors, order=1) - template
        break
    return chosen


if __name__ == "__main__":
    found = reference_volume(sys.argv[1], atlas="mni152.nii.gz")
    if found is None:
        sys.exit("no usable scan")
    print(found[0], np.abs(found[1]).mean())
