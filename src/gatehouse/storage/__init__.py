"""One interface, two databases: implements what the packages declare in their `store.py`.

Verbs are generators written once and driven by two runners. Decides nothing about permissions, and
never imports `web`.
"""
