"""The service's own signing keys, and what seals secrets at rest: make, rotate, retire, publish as JWKS.

Never signs or reads a token, never shows a private key, and never makes an outbound call for a key.
"""
