"""An OAuth client and its secrets (R3)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

SCOPES: Final = ("openid", "offline_access", "email", "profile", "trust")
SECRETS_MOST: Final = 2  # live at once, while one is being rotated


class Profile(StrEnum):
    NATIVE = "native"  # interface §4.2 to the letter: the SHA-1 proof
    OIDC = "oidc"  # plain OpenID Connect for off-the-shelf clients


class SecretKind(StrEnum):
    SEALED = "sealed"  # native clients: the proof needs the secret itself
    SHA256 = "sha256"  # generated secrets of oidc clients: 256 bit need no slow hash
    ARGON2 = "argon2"  # imported weak ones


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSecret:
    slot: int = 1  # or 2
    kind: SecretKind
    secret: bytes = field(repr=False)
    created_at: int
    expires_at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    client_id: str
    name: str
    profile: Profile = Profile.NATIVE
    application_id: int | None = None
    redirect_hosts: tuple[str, ...] = ()
    redirect_uris: tuple[str, ...] = ()
    post_logout_uris: tuple[str, ...] = ()
    scopes: tuple[str, ...] = SCOPES
    token_settings: Mapping[str, str] = field(default_factory=dict)
    first_party: bool = False
    may_exchange: bool = True
    require_pkce: bool = False
    public: bool = False
    removed: bool = False
    created_at: int
    version: int = 1
    secrets: tuple[ClientSecret, ...] = ()
