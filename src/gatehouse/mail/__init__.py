"""Letters to people: composed in their language, sealed into an outbox with the act they tell of, delivered by SMTP.

Never makes a request wait for a mail server, never forgets a letter before a server took it, and never decides
whom to write to.
"""
