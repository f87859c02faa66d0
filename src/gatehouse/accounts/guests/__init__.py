"""Guests: players without an account, who sign in with the key of their device (R10)."""
