"""Sign-in with other services (R10): OpenID Connect, OAuth 2.0 and Steam.

Owns the request to a provider and the proof of an identity; `accounts` decides which account it opens. Providers are
called through `outbound` only.
"""
