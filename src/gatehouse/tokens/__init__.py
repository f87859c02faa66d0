"""JWTs as typed claims, signed and verified: user, exchanged, id, refresh, service, service account.

This package does not decide who gets a token, nor whether one was revoked: callers check that next.
"""
