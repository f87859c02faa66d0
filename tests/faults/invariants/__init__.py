"""What must hold whatever breaks: checkers over a history, each a sentence that says what is wrong.

`I1` to `I15` are the numbers of docs/operations/faults.md. A checker that could not say no would prove nothing:
tests/faults/test_invariants.py shows each of them a history that is right and one that is not.
"""
