"""Reads the stack of a running Python process from outside, without stopping it.

The process executes no code for this: the kernel reads its memory. See
docs/decisions/stacks-from-outside.md. Of programs that are not Python, the kernel samples the
functions; see docs/decisions/native-functions.md.
"""
