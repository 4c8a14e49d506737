"""The worked examples of CPU against GPU: programs, and what measures and judges them."""
