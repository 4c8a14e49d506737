"""One short file a bottleneck."""
