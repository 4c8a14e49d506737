"""Memory of nodes and GPUs."""
