"""The administration console: pages over the same commands and the same guard as the API.

Only lazy_console.py and paths.py are loaded with the server; everything else loads with the first request.
"""
