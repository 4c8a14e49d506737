"""
verdict: same
stack:
  stabilise("flight.mp4", "reference.png")
  homography(reference, gray)
  keypoints(fixed)
  detector.detectAndCompute(image, None)
call: keypoints(fixed)
loop: while True
why: features of the one reference image are detected again for each video frame
"""
import cv2
import numpy as np


def keypoints(image):
    detector = cv2.SIFT_create(nfeatures=8000)
    points, descriptors = detector.detectAndCompute(image, None)
    return np.float32([p.pt for p in points]), descriptors


def homography(fixed, moving):
    p0, d0 = keypoints(fixed)
    p1, d1 = keypoints(moving)
    pairs = cv2.BFMatcher().knnMatch(d1, d0, k=2)
    good = [a for a, b in pairs if a.distance < 0.7 * b.distance]
    src = p1[[g.queryIdx for g in good]]
    dst = p0[[g.trainIdx for g in good]]
    matrix, _ = cv2.findHomography(src, dst, cv2.RANSAC, 3.0)
    return matrix


def stabilise(video, still):
    reference = cv2.imread(still, cv2.IMREAD_GRAYSCALE)
    height, width = reference.shape
    capture = cv2.VideoCapture(video)
    total = np.zeros((height, width))
    frames = 0
    while True:
        ok, frame = capture.read()
        if not ok:
            break
        gray = cv2.cvtColor(frame, cv2.COLOR_BGR2GRAY)
        matrix = homography(reference, gray)
        total += cv2.warpPerspective(gray, matrix, (width, height))
        frames += 1
    return total / max(frames, 1)


if __name__ == "__main__":
    cv2.imwrite("mean.png", stabilise("flight.mp4", "reference.png"))
