"""Checkers of what must hold during every fault; each returns the problems it finds in a history.

`I1` to `I15` are the numbers of docs/operations/faults.md. tests/faults/test_invariants.py gives each checker a valid
history and an invalid one, because a checker that never fails would prove nothing.
"""
