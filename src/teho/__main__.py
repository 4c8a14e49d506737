"""`python -m teho`."""

from teho.cli import main

main()
