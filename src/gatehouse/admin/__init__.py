"""Queries and records of the console, one module per entry, and who sees what.

Here are the questions that only a screen has (search, paging, counts, consequences of a removal), and what an
administrator does to accounts and keys through the packages that own them. Who may do something is decided elsewhere,
by the commands and the guard of `permissions`, for the console as for the API. Each query is a Protocol, because
neither this package nor `web` may import `storage`.
"""
