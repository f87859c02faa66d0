"""Phone numbers of accounts: verified by a code in a text message, and the messages themselves (R11).

A number is never a login or a way to reset one. Does not render pages and reads no settings.
"""
