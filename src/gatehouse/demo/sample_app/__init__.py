"""A minimal web application: who signed in with Gatehouse, and what they may do.

Uses Starlette, Jinja and `gatehouse.client`, and nothing of the server.
"""
