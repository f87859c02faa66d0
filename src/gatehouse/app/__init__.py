"""The composition root: builds the services from settings and a database, and the ASGI application from the services.

The only package that imports all others and connects them, by hand. Decides nothing that a package could decide.
"""
