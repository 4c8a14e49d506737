"""A recording on disk: journal, seal, read, index."""
