"""Permissions: applications, their schemas and roles, who holds them, and the callers.

Decides rights on typed records, without HTTP.
"""
