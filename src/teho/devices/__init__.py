"""What one node can be asked: the host, NVIDIA and AMD GPUs."""
