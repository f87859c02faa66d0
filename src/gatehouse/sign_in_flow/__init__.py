"""A person's way through one sign-in: prove who you are, then whatever the occasion asks for.

One stored record, one dispatcher, used by the account pages, authorize, game sessions and the device
grant. Every step returns here, never to another step. Knows no page and no protocol.
"""
