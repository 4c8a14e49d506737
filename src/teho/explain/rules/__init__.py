"""The rules, by subject: one short file each, found by `teho.explain.registry`."""
