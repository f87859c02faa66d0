"""The settings of an installation: frozen, typed, read once, and rejected when anything is wrong.

Later sources win: defaults, what --dev implies, the database, gatehouse.toml, GATEHOUSE__SECTION__KEY variables,
flags.
"""
