"""What a signed-in person does with the account that is his: names, addresses, passwords, a copy of all, the end.

Never shows a page, and never asks whether the proof was fresh enough (its caller has); what it changes is on
record and told by mail in the same act.
"""
