"""Find problems of the environment, the allocation and the binding before a job fails."""
