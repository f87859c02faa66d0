"""What applications keep about a person: asked for and removed at their addresses, with a status for each.

Never decides who may ask, and never sends more than an id.
"""
