"""Reads the stack of a running Python process from outside, without stopping it.

The process executes nothing for this: its memory is read by the kernel on our behalf. See
docs/decisions/stacks-from-outside.md.
"""
