"""From a run's figures and findings to its `Report`."""
