"""The HTTP and WebSocket server: protocol, limits, shutdown."""
