"""Rate limits: attempts counted exactly in the database, request volume bounded per process.

Knows neither accounts nor endpoints; the caller names the subject and the limits.
"""
