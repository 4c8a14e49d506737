"""Why a Python program is slow: rules that read what its probe saw, one short file each.

They are rules like all others (see `teho.explain.rules`); each says which share of the time its
cause could give back.
"""
