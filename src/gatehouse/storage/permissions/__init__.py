"""Keeps applications, roles, projects, groups and who holds what (permissions/store.py), a file a resource."""
