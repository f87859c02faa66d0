"""The person behind a request, as his JWT tells."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Also what Starlette expects of `request.user`."""

    user_id: str
    nick: str = ""
    auth: str = ""  # how he proved who he is: login, 2step, openid or passkey
    tags: frozenset[str] = frozenset()
    tags_omitted: bool = False  # they are too long for a JWT: `tags` is empty, and says nothing about the person
    country: str = ""
    lang: str = ""
    expires_at: int = 0
    has_factor: bool = False  # the request showed the factor that the JWT is bound to
    address: str | None = None  # his own, if the application knows it
    claims: Mapping[str, object] = field(default_factory=dict, repr=False, compare=False)
    jwt: str = field(repr=False)

    @property
    def cache_key(self) -> tuple[bytes, str]:
        """What an answer about him is remembered under: one JWT, from one address."""
        return sha256(self.jwt.encode()).digest(), self.address or ""

    @property
    def is_authenticated(self) -> bool:
        return True

    @property
    def display_name(self) -> str:
        return self.nick

    @property
    def identity(self) -> str:
        return self.user_id
