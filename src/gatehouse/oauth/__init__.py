"""OAuth 2.0 and OpenID Connect, without HTTP: clients, what people grant them, and tokens.

Never renders a page, never stores anything itself, and never decides what a person may do in an application.
"""
