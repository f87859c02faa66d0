"""OAuth clients as forms write them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

import msgspec

from gatehouse.keys.model import Algorithm
from gatehouse.oauth.errors import BadClient
from gatehouse.oauth.model import SCOPES, ClaimContent, ClaimSource, Client, ClientProfile, TokenSettings
from gatehouse.web.console.forms import join_lines, split_lines
from gatehouse.web.pages.forms import CsrfForm

YES: Final = "yes"
NUMBER: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
DEFAULT_TOKEN_SETTINGS: Final = TokenSettings()


class ClientForm(CsrfForm, frozen=True, kw_only=True):
    """Lists are a line each; a box that is not ticked is not sent."""

    client_id: str = ""
    client_name: str = ""
    profile: str = ClientProfile.OIDC.value
    public: str = ""
    redirect_uris: str = ""
    redirect_hosts: str = ""
    post_logout_uris: str = ""
    scopes: tuple[str, ...] = ()
    origins: str = ""
    backchannel_logout_uri: str = ""
    claims: str = ""
    jwks: str = ""
    id_token_alg: str = DEFAULT_TOKEN_SETTINGS.id_token_alg.value
    access_seconds: int = DEFAULT_TOKEN_SETTINGS.access_seconds
    refresh_seconds: int = DEFAULT_TOKEN_SETTINGS.refresh_seconds
    refresh_grace_seconds: str = ""
    device_grant: str = ""
    require_pkce: str = ""
    explain_errors: str = ""
    first_party: str = ""
    may_exchange: str = ""
    version: int = 0


def new_form() -> ClientForm:
    return ClientForm(scopes=("openid", "email", "profile"), require_pkce=YES)


def form_of(client: Client) -> ClientForm:
    tokens = client.token_settings
    grace = tokens.refresh_grace_seconds
    return ClientForm(
        client_id=client.client_id,
        client_name=client.name,
        profile=client.profile.value,
        public=checkbox_value(yes=client.public),
        redirect_uris=join_lines(client.redirect_uris),
        redirect_hosts=join_lines(client.redirect_hosts),
        post_logout_uris=join_lines(client.post_logout_uris),
        scopes=client.scopes,
        origins=join_lines(client.origins),
        backchannel_logout_uri=client.backchannel_logout_uri,
        claims=join_lines(f"{name}={one.application_id}:{one.told}" for name, one in client.claims.items()),
        jwks="" if not client.jwks else msgspec.json.format(msgspec.json.encode(client.jwks), indent=2).decode(),
        id_token_alg=tokens.id_token_alg.value,
        access_seconds=tokens.access_seconds,
        refresh_seconds=tokens.refresh_seconds,
        refresh_grace_seconds="" if grace is None else str(grace),
        device_grant=checkbox_value(yes=client.device_grant),
        require_pkce=checkbox_value(yes=client.require_pkce),
        explain_errors=checkbox_value(yes=client.explain_errors),
        first_party=checkbox_value(yes=client.first_party),
        may_exchange=checkbox_value(yes=client.may_exchange),
        version=client.version,
    )


def new_client(form: ClientForm, application_id: int, *, now: int) -> Client:
    if form.profile not in list(ClientProfile):
        raise BadClient("profile: choose native or oidc")
    blank = Client(
        client_id=form.client_id.strip(),
        name="",
        profile=ClientProfile(form.profile),
        application_id=application_id,
        public=form.public == YES,
        may_exchange=False,
        created_at=now,
    )
    return replace(apply_form(blank, form), version=blank.version)


def apply_form(client: Client, form: ClientForm) -> Client:
    """The client as the form wants it: what it always is stays, and its version is the one the form was made from."""
    return replace(
        client,
        name=form.client_name.strip(),
        redirect_hosts=tuple(split_lines(form.redirect_hosts)),
        redirect_uris=tuple(split_lines(form.redirect_uris)),
        post_logout_uris=tuple(split_lines(form.post_logout_uris)),
        scopes=tuple(scope for scope in SCOPES if scope in form.scopes),
        origins=tuple(split_lines(form.origins)),
        backchannel_logout_uri=form.backchannel_logout_uri.strip(),
        claims=dict(parse_claims(form)),
        jwks=parse_jwks(form.jwks),
        token_settings=parse_token_settings(form),
        device_grant=form.device_grant == YES,
        require_pkce=form.require_pkce == YES,
        explain_errors=form.explain_errors == YES,
        first_party=form.first_party == YES,
        may_exchange=form.may_exchange == YES,
        version=form.version,
    )


def parse_claims(form: ClientForm) -> Iterator[tuple[str, ClaimSource]]:
    """NAME=APPLICATION_ID:roles, as the command line writes them."""
    for line in split_lines(form.claims):
        claim, _, source = line.partition("=")
        number, _, told = source.partition(":")
        if not claim or not NUMBER.fullmatch(number) or told not in list(ClaimContent):
            raise BadClient(f"claims: {line} must be NAME=APPLICATION_ID:{'|'.join(ClaimContent)}")
        yield claim, ClaimSource(application_id=int(number), told=ClaimContent(told))


def parse_jwks(text: str) -> Mapping[str, object]:
    try:
        return msgspec.json.decode(text, type=dict[str, object]) if text.strip() else {}
    except msgspec.DecodeError:
        raise BadClient("jwks: enter a JWK set as JSON") from None


def parse_token_settings(form: ClientForm) -> TokenSettings:
    grace = form.refresh_grace_seconds.strip()
    if form.id_token_alg not in list(Algorithm) or (grace and not NUMBER.fullmatch(grace)):
        raise BadClient("Token settings: choose a listed algorithm and enter seconds as a number")
    return TokenSettings(
        id_token_alg=Algorithm(form.id_token_alg),
        access_seconds=form.access_seconds,
        refresh_seconds=form.refresh_seconds,
        refresh_grace_seconds=int(grace) if grace else None,
    )


def checkbox_value(*, yes: bool) -> str:
    return YES if yes else ""
