"""The model: what R1, R10 and R14 say about each step, in plain Python."""
