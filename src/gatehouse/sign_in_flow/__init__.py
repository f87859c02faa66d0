"""One sign-in in a browser: authenticate, then answer whatever its purpose requires.

One stored record and one dispatcher, used by the account pages, authorize, game sessions and the device grant.
Every step returns to the dispatcher, never to another step. Knows no page and no protocol.
"""
