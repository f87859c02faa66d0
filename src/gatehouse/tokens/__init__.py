"""JWTs as typed claims, signed and verified: user, exchanged, id, refresh, service, service account.

Never decides who gets a token, and never asks whether one was revoked: callers check that next.
"""
