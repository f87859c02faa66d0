"""Second factors: TOTP, passkeys, codes by email, and recovery codes.

Does not render pages, relies on the caller to check that authentication is recent, and never stores a code or
secret in plain text.
"""
