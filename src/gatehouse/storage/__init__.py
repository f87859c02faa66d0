"""One interface, two databases: what the rooms declare in their `store.py` is kept here.

Verbs are generators written once and driven by two runners. Decides nothing about permissions, and
never imports `web`.
"""
