"""Configuration files: plan, apply and export (R7).

Compares a file with what is stored and makes the changes in one transaction. Knows no HTTP, reads neither the
environment nor files by itself, and never prints a secret that it did not make.
"""
