"""Queries and records of the console, one module per entry, and who sees what.

Here are the questions that only a screen has (search, paging, counts, consequences of a removal), each with its SQL,
and what an administrator does to accounts and keys through the packages that own them. Who may do something is
decided elsewhere, by the commands and the guard of `permissions`, for the console as for the API. The queries read
snapshots off the event loop; no statement here writes.
"""
