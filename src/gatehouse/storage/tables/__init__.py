"""The schema of both databases, with one module per package.

Times are Unix seconds as integers; 0 stands for "no end" and "never", as on the wire. Everything that must be unique,
single use or limited is a constraint here, never a count in the code. `every_table.metadata` has all tables; a module
that needs some imports theirs, and a command builds no others.
"""
