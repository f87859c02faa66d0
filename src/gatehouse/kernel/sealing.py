"""Encryption of stored secrets, as packages without access to keys see it."""

from typing import Protocol


class SecretSealer(Protocol):
    """Encrypts with the master keys."""

    def seal(self, plain: bytes, *, purpose: str) -> bytes:
        """Encrypt and authenticate, bound to the purpose."""

    def follow(self, named: str) -> None:
        """Take over which master keys the installation uses, as it is stored there."""

    def try_open(self, sealed: bytes, *, purpose: str) -> bytes | None:
        """Return what was sealed for that purpose; None, with an alarm, for anything else."""
