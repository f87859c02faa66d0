"""HTTP and WebSocket: turns bytes into typed requests and records or errors into answers.

Owns the server, the middleware, the routes and the pages. Decides nothing about people, tokens or
permissions, and never touches storage.
"""
