"""Requests to addresses that other people chose: checked, bounded, made once.

Connects only to an address it has checked, follows nothing, believes nothing. Never decides when to call or what an
answer means, and never tries again by itself: packages that do have their own queues.
"""
