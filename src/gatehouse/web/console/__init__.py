"""The administration console: pages over the same commands and the same guard as the API.

Only door.py and places.py are loaded with the server; everything else comes with the first visitor.
"""
