"""NVIDIA's DCGM: what the driver itself does not report before Hopper."""
