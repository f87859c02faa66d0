"""What happened, to whom, and by whose hand: records that commit with the change they tell of.

Makes records, seals them into a chain afterwards and verifies it. Never holds a secret, and never
decides whether something may happen.
"""
