"""Sign-in with identities that other services vouch for (R10)."""
