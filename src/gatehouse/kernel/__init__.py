"""What every package uses: time, ids, digests, addresses, text, the base error.

Imports the standard library only, and knows no rule of the service.
"""
