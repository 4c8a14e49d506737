"""Settings and TOML files as typed structs; an unknown key gets a "did you mean"."""
