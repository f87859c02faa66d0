"""What signed-in people do with their own account: name, email address, password, data export, deletion.

Does not render pages, and relies on the caller to check that authentication is recent. Every change is recorded and
notified by email in the same transaction.
"""
