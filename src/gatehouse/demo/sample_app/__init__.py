"""A web application as anybody could write it: who signed in with Gatehouse, and what he may do.

Uses Starlette, Jinja and `gatehouse.client`, and nothing of the server.
"""
