"""Accounts, sessions, second factors and links."""
