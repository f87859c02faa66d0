"""What happened, told to addresses that administrators name: signed, tried again, with a log of every delivery.

Reads the sealed audit log and nothing else, so that it hears only of what is true and slows nobody down. Never sends
a personal field, an address or a secret, and never decides what an event means.
"""
