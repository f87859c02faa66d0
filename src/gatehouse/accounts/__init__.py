"""People and how they prove who they are: accounts, passwords, the first administrator.

Never speaks HTTP, never decides what an account may do in an application (that is `permissions`).
"""
