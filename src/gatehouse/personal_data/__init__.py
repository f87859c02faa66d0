"""Personal data in applications: requested and removed at their addresses, with a status for each.

Does not decide who may request it, and sends nothing but an ID.
"""
