"""From rows to figures, from figures to findings."""
