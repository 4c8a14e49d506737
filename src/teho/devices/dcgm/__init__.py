"""NVIDIA's DCGM: figures that the driver does not report before Hopper."""
