"""The kinds of sign-in providers, and what every provider of a kind has in common."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct


class ProviderProtocol(StrEnum):
    """How a provider is asked."""

    OIDC = "oidc"  # OpenID Connect by its discovery document
    OAUTH = "oauth"  # OAuth 2.0 and an endpoint about the user; no id_token
    STEAM = "steam"  # OpenID 2.0
    TOKENS = "tokens"  # only tokens of game clients: no sign-in in a browser


class ProviderPreset(Struct, frozen=True, kw_only=True):
    """What every provider of a kind has in common."""

    title: str
    protocol: ProviderProtocol = ProviderProtocol.OIDC
    issuer: str = ""
    scopes: tuple[str, ...] = ("openid", "email", "profile")
    has_pkce: bool = True
    posts_response: bool = False  # the browser posts the answer (Apple)
    keys_path: str = ""  # of the key set, below the issuer, if there is no discovery document
    allows_several_audiences: bool = False  # of a token: they say where it belongs, from project to environment


PRESETS: Final[Mapping[str, ProviderPreset]] = {
    "oidc": ProviderPreset(title=""),
    "google": ProviderPreset(title="Google", issuer="https://accounts.google.com"),
    "apple": ProviderPreset(
        title="Apple",
        issuer="https://appleid.apple.com",
        scopes=("openid", "email", "name"),
        posts_response=True,
    ),
    "microsoft": ProviderPreset(title="Microsoft", issuer="https://login.microsoftonline.com"),
    "discord": ProviderPreset(
        title="Discord", protocol=ProviderProtocol.OAUTH, issuer="https://discord.com", scopes=("identify", "email")
    ),
    "github": ProviderPreset(
        title="GitHub",
        protocol=ProviderProtocol.OAUTH,
        issuer="https://github.com",
        scopes=("read:user", "user:email"),
    ),
    "twitch": ProviderPreset(
        title="Twitch", issuer="https://id.twitch.tv/oauth2", scopes=("openid", "user:read:email"), has_pkce=False
    ),
    "epic": ProviderPreset(
        title="Epic Games", issuer="https://api.epicgames.dev/epic/oauth/v1", scopes=("openid", "basic_profile")
    ),
    "steam": ProviderPreset(
        title="Steam", protocol=ProviderProtocol.STEAM, issuer="https://steamcommunity.com", scopes=(), has_pkce=False
    ),
    "unity": ProviderPreset(
        title="Unity",
        protocol=ProviderProtocol.TOKENS,
        issuer="https://player-auth.services.api.unity.com",
        keys_path="/.well-known/jwks.json",
        allows_several_audiences=True,
    ),
    "jwt": ProviderPreset(title="", protocol=ProviderProtocol.TOKENS),
}
