"""What a file says should exist, compared with what does: plan, apply, export (R7).

Decides what has to change and carries it out in one transaction. Never speaks HTTP, never reads the
environment or a file by itself, and never shows a secret that somebody else made.
"""
