"""Emails: rendered in the recipient's language, sealed into an outbox in the causing transaction, sent by SMTP.

A request never waits for a mail server, and an email stays in the outbox until a server has accepted it. Other
packages decide whom to write to.
"""
