"""The change stream: what changed in accounts, permissions and applications, in the order of the sealed audit log.

Reads only sealed records. Every caller sees what their rights cover, and continues after the last id they received.
"""
