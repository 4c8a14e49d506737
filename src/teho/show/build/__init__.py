"""One `Document` from the results of each command."""
