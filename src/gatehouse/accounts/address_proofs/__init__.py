"""The first proof of an address by email: what ends with it."""
