"""A static service JWT: issued by an administrator for an application, revocable (R2)."""

from msgspec import Struct


class EmailSecret(Struct, frozen=True, kw_only=True):
    """The stored part of a `with_email` secret of an application (R1)."""

    digest: bytes
    created_at: int

    @property
    def ref(self) -> str:
        """Identifies it among the application's keys; it reveals nothing else."""
        return self.digest.hex()[:12]


class ServiceToken(Struct, frozen=True, kw_only=True):
    jti: str
    application_id: int
    comment: str = ""
    created_at: int
    ends_at: int
    revoked: bool = False


class FoundServiceToken(Struct, frozen=True, kw_only=True):
    """A service token with the version of the signing keys that its JWT is judged by, read in one statement."""

    token: ServiceToken
    keys_version: int
