"""Who may do what: applications, their schemas and roles, and who holds them.

Decides rights on typed records; never speaks HTTP and never signs a token.
"""
