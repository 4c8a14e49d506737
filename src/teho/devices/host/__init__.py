"""The host of a node: CPU, memory, processes, I/O, network and energy."""
