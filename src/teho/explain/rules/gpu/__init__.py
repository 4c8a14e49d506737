"""GPUs that are not used, or not used well."""
