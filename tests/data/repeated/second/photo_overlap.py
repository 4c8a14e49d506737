"""
verdict: set
stack:
  overlaps(sys.argv[1:])
  keypoints(other)
  sift.detectAndCompute(grey, None)
call: keypoints(other)
loop: for first in photos
why: for each first photo, the inner loop extracts the keypoints of the same photos again
"""
import sys

import cv2
import numpy as np


def keypoints(path):
    grey = cv2.imread(path, cv2.IMREAD_GRAYSCALE)
    scale = 1600 / max(grey.shape)
    grey = cv2.resize(grey, None, fx=scale, fy=scale)
    sift = cv2.SIFT_create(nfeatures=8000)
    points, descriptors = sift.detectAndCompute(grey, None)
    return np.float32([p.pt for p in points]), descriptors


def inliers(a, b):
    matcher = cv2.BFMatcher()
    pairs = matcher.knnMatch(a[1], b[1], k=2)
    good = [m for m, n in pairs if m.distance < 0.75 * n.distance]
    if len(good) < 8:
        return 0
    src = np.array([a[0][m.queryIdx] for m in good])
    dst = np.array([b[0][m.trainIdx] for m in good])
    _, mask = cv2.findHomography(src, dst, cv2.RANSAC, 4.0)
    return 0 if mask is None else int(mask.sum())


def overlaps(photos):
    result = {}
    for first in photos:
        reference = keypoints(first)
        for other in photos:
            if other == first:
                continue
            result[first, other] = inliers(reference, keypoints(other))
    return result


if __name__ == "__main__":
    for (a, b), n in overlaps(sys.argv[1:]).items():
        print(a, b, n)
