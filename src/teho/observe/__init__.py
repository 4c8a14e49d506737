"""The supervisor of `teho run`, and the recorder that samples beside it."""
