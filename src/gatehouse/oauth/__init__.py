"""OAuth 2.0 and OpenID Connect, without HTTP: clients now, the flows as they come.

Never renders a page and never keeps anything itself.
"""
