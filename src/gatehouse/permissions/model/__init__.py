"""The records of the permission model, one file a resource."""
