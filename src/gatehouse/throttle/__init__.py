"""How often someone may try: guesses counted exactly in the database, volume bounded per process.

Knows nothing of accounts or endpoints; whoever counts names the subject and the limits.
"""
