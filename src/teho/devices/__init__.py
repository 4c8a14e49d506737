"""What one node can be asked: the host, and GPUs. Each vendor of GPUs is one folder."""
