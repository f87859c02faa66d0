"""The description of a record's fields, written once beside their types, and what is derived from it.

The API, files, the command line, forms, CSV and audit records read it. Knows no kind of record and no rule of the
service.
"""
