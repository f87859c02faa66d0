"""Stores applications, roles, projects, groups and user records (permissions/store.py), one module each."""
