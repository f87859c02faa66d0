"""What the console asks: one module per entry (`model` has its records and its own read store), and who sees what.

It owns questions that only a person in front of a screen has (search, paging, counts, what would break), and what an
administrator does to accounts and keys by the verbs of their rooms. It never decides who may do something: commands
and the guard of `permissions` do, for the console as for the API.
"""
