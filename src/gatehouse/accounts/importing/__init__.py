"""Accounts from other systems: their files, their password hashes, and the import (R10)."""
