"""Guests: players without an account, who sign in with a device key (R10)."""
