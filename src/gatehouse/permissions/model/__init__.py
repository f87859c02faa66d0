"""The records of the permission model."""
