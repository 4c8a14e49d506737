"""Inside a job, once per task: rank, binding, threads, caches, and then the user's own program."""
