"""Storage of accounts, sessions, second factors and links."""
