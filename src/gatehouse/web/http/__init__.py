"""What every request passes before a route: its id, its headers, its caller, its size.

Plain ASGI only, because Starlette's BaseHTTPMiddleware hides a client's leaving. From the outside in:
RequestId, SecurityHeaders, ClientAddress, BodyLimit; so that a refusal of the inner two is dressed by
the outer two. Decides nothing about what the request asks for.
"""
