"""Commands that change the permission model, one module per resource; each asks the guard first."""
