"""Writes recordings for TensorBoard, Weights & Biases, MLflow and Trackio: one file per tracker."""
