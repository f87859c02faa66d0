"""Reads for the console (`admin`): searched, counted and paged by the database, away from the event loop."""
