"""From the results of each command to the `Document` that all faces render."""
