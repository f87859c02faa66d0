"""The composition root: settings and a database become rooms, and rooms become an ASGI application.

The only place where everything is known and put together, by hand. Decides nothing a room could decide.
"""
