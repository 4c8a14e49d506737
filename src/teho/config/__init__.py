"""Settings and TOML files, turned into nouns; unknown keys get a "did you mean"."""
