"""The view of a run, and the faces that render it."""
