"""GPU software: which build fits which driver and GPU, how to get it, what is installed."""
