"""Sign-in to sites behind a reverse proxy, which asks this service about every request (R9).

Owns the hand-over of a sign-in to a site and the site's own session, which ends with the person's. Never decides what
a person may do: `permissions` does. Knows no proxy and no header.
"""
