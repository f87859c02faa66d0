"""`python -m gatehouse` is the command `gatehouse`."""

from gatehouse.cli import main

main(prog_name="gatehouse")
