"""The audit log: who did what to whom, in records that commit with the change.

Makes records, seals them into a chain afterwards and verifies it. Never holds a secret, and never
decides whether something may happen.
"""
