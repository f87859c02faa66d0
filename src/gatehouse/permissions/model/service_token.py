"""A static service JWT: issued by an administrator for an application, revocable (R2)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EmailSecret:
    """A `with_email` secret of an application: what is left of it (R1)."""

    digest: bytes
    created_at: int

    @property
    def ref(self) -> str:
        """What tells it from the application's others, and leads to nothing else."""
        return self.digest.hex()[:12]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceToken:
    jti: str
    application_id: int
    comment: str = ""
    created_at: int
    ends_at: int
    revoked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundServiceToken:
    """A service token with the version of the signing keys that its JWT is judged by, read in one statement."""

    token: ServiceToken
    keys_version: int
