"""Accounts of people and how they sign in: accounts, passwords, sessions, the first administrator.

Does not handle HTTP and does not decide what an account may do in an application (`permissions` does).
"""
