"""Commands that change the permission model, one module per resource; each calls the guard first."""
