"""Builds the screens of the console, a section at its first request (web/console/lazy_console.py)."""
