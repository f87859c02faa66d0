"""Queries of the console (`admin`): searched, counted and paged by the database, off the event loop."""
