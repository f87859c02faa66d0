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
    mark: str = ""  # one or two letters in place of a logo
    console: str = ""  # the page of the vendor where clients are registered
    protocol: ProviderProtocol = ProviderProtocol.OIDC
    issuer: str = ""
    scopes: tuple[str, ...] = ("openid", "email", "profile")
    has_pkce: bool = True
    posts_response: bool = False  # the browser posts the answer (Apple)
    keys_path: str = ""  # of the key set, below the issuer, if there is no discovery document
    allows_several_audiences: bool = False  # of a token: they say where it belongs, from project to environment


PRESETS: Final[Mapping[str, ProviderPreset]] = {
    "oidc": ProviderPreset(title="", mark="ID"),
    "google": ProviderPreset(
        title="Google",
        mark="G",
        console="https://console.cloud.google.com/apis/credentials",
        issuer="https://accounts.google.com",
    ),
    "apple": ProviderPreset(
        title="Apple",
        mark="A",
        console="https://developer.apple.com/account/resources/identifiers",
        issuer="https://appleid.apple.com",
        scopes=("openid", "email", "name"),
        posts_response=True,
    ),
    "microsoft": ProviderPreset(
        title="Microsoft",
        mark="Ms",
        console="https://entra.microsoft.com",
        issuer="https://login.microsoftonline.com",
    ),
    "discord": ProviderPreset(
        title="Discord",
        mark="D",
        console="https://discord.com/developers/applications",
        protocol=ProviderProtocol.OAUTH,
        issuer="https://discord.com",
        scopes=("identify", "email"),
    ),
    "github": ProviderPreset(
        title="GitHub",
        mark="GH",
        console="https://github.com/settings/developers",
        protocol=ProviderProtocol.OAUTH,
        issuer="https://github.com",
        scopes=("read:user", "user:email"),
    ),
    "twitch": ProviderPreset(
        title="Twitch",
        mark="Tw",
        console="https://dev.twitch.tv/console/apps",
        issuer="https://id.twitch.tv/oauth2",
        scopes=("openid", "user:read:email"),
        has_pkce=False,
    ),
    "epic": ProviderPreset(
        title="Epic Games",
        mark="E",
        console="https://dev.epicgames.com/portal",
        issuer="https://api.epicgames.dev/epic/oauth/v1",
        scopes=("openid", "basic_profile"),
    ),
    "steam": ProviderPreset(
        title="Steam",
        mark="St",
        console="https://partner.steamgames.com",
        protocol=ProviderProtocol.STEAM,
        issuer="https://steamcommunity.com",
        scopes=(),
        has_pkce=False,
    ),
    "unity": ProviderPreset(
        title="Unity",
        mark="U",
        console="https://cloud.unity.com",
        protocol=ProviderProtocol.TOKENS,
        issuer="https://player-auth.services.api.unity.com",
        keys_path="/.well-known/jwks.json",
        allows_several_audiences=True,
    ),
    "jwt": ProviderPreset(title="", mark="JW", protocol=ProviderProtocol.TOKENS),
}
