"""What changes the permission model, one file a resource; each is opened by the guard before it does anything."""
