"""Providers without an id_token: OAuth 2.0, and an endpoint that says who the token belongs to (GitHub, Discord)."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from msgspec import Struct

from gatehouse.accounts.identities import ForeignPerson
from gatehouse.kernel.text import is_plain_line
from gatehouse.providers.answers import ProviderCalls, flag_in, object_in, text_in
from gatehouse.providers.model import Provider, ProviderAuthorization, ProviderUnavailable
from gatehouse.providers.openid_connect import authorization_fields

GITHUB: Final = "https://github.com"
GITHUB_API: Final = "https://api.github.com"
MAX_TOKEN_LENGTH: Final = 4_096
MAX_ID_LENGTH: Final = 100


class OAuthEndpoints(Struct, frozen=True, kw_only=True):
    authorization: str
    token: str
    user: str


def endpoints_of(provider: Provider) -> OAuthEndpoints:
    base = provider.issuer.rstrip("/")
    if provider.kind == "github":
        api = GITHUB_API if base == GITHUB else f"{base}/api/v3"  # GitHub Enterprise
        return OAuthEndpoints(
            authorization=f"{base}/login/oauth/authorize",
            token=f"{base}/login/oauth/access_token",
            user=f"{api}/user",
        )
    return OAuthEndpoints(
        authorization=f"{base}/oauth2/authorize", token=f"{base}/api/oauth2/token", user=f"{base}/api/users/@me"
    )


class OAuthUsers:
    def __init__(self, calls: ProviderCalls) -> None:
        self._calls = calls

    async def authorization_url(self, provider: Provider, request: ProviderAuthorization) -> str:
        return f"{endpoints_of(provider).authorization}?{urlencode(authorization_fields(provider, request))}"

    async def fetch_person(
        self, provider: Provider, request: ProviderAuthorization, answer: Mapping[str, str]
    ) -> ForeignPerson:
        """Return who signed in. Raises ProviderProblem."""
        endpoints = endpoints_of(provider)
        token = await self._redeem(provider, endpoints, request, answer.get("code", ""))
        user = await self._calls.get_object(endpoints.user, token=token)
        if provider.kind == "github":
            return await self._github_person(provider, endpoints, user, token)
        return discord_person(provider, user)

    async def _redeem(
        self, provider: Provider, endpoints: OAuthEndpoints, request: ProviderAuthorization, code: str
    ) -> str:
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": request.redirect_uri,
            "client_id": provider.client_id,
            "client_secret": provider.client_secret,
            "code_verifier": request.code_verifier,
        }
        answer = await self._calls.post_form(endpoints.token, fields)
        # GitHub answers 200 for errors too.
        token = text_in(object_in(answer, endpoints.token), "access_token", most=MAX_TOKEN_LENGTH)
        if not answer.is_success or not token:
            raise ProviderUnavailable(f"the token endpoint answered {answer.status} without a token")
        return token

    async def _github_person(
        self, provider: Provider, endpoints: OAuthEndpoints, user: Mapping[str, object], token: str
    ) -> ForeignPerson:
        """The address in the profile is chosen freely; the list of addresses says which are verified."""
        email = await self._github_email(endpoints, token) if "user:email" in provider.scopes else ""
        return ForeignPerson(
            issuer=provider.issuer,
            subject=subject_in(user),
            email=email,
            email_verified=bool(email),
            name=text_in(user, "name", most=200),
            nick=text_in(user, "login"),
            claims=user,
        )

    async def _github_email(self, endpoints: OAuthEndpoints, token: str) -> str:
        for email in await self._calls.get_list(f"{endpoints.user}/emails", token=token):
            if isinstance(email, dict) and flag_in(email, "primary") and flag_in(email, "verified"):
                return text_in(email, "email", most=254)
        return ""


def discord_person(provider: Provider, user: Mapping[str, object]) -> ForeignPerson:
    email = text_in(user, "email", most=254)
    return ForeignPerson(
        issuer=provider.issuer,
        subject=subject_in(user),
        email=email,
        email_verified=bool(email) and flag_in(user, "verified"),
        name=text_in(user, "global_name", most=200),
        nick=text_in(user, "username"),
        claims=user,
    )


def subject_in(user: Mapping[str, object]) -> str:
    """Return the ID: a number at GitHub, a text of digits at Discord; names can be given to others."""
    user_id = user.get("id")
    if (
        isinstance(user_id, bool)
        or not isinstance(user_id, int | str)
        or not is_plain_line(str(user_id))
        or not 0 < len(str(user_id)) <= MAX_ID_LENGTH
    ):
        raise ProviderUnavailable("the user endpoint names no one")
    return str(user_id)
