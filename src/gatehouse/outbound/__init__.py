"""Requests to addresses that other people chose: checked, limited, sent once.

Connects only to an address it has checked, follows no redirect and trusts no response. It does not decide when to
call or what a response means, and does not retry: packages that do have their own queues.
"""
