"""Who may do what: applications, their schemas and roles, who holds them, and who is asking.

Decides rights on typed records; never speaks HTTP.
"""
