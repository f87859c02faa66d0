"""Failed sign-ins of known accounts, for their owners and for support."""
