"""The administration console: pages over the same commands and the same guard as the API.

Only lazy_console.py, path_table.py and paths.py are loaded with the server; a section loads with its first request.
"""
