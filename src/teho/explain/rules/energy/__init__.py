"""Energy, power and heat."""
