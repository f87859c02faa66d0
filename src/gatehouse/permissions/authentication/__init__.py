"""Authenticates callers of permission endpoints: credentials, vouching application, authenticated request."""
