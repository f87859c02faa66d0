"""A client as `gatehouse client` shows it; secrets are never shown again."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from gatehouse.app.services import Services
from gatehouse.cli.common import (
    Invocation,
    common_options,
    format_time,
    json_option,
    print_facts,
    print_json,
    print_table,
)
from gatehouse.cli.services import operator_origin, run_with_services
from gatehouse.keys.model import Algorithm
from gatehouse.oauth.clients import OLD_SECRET_LIFETIME
from gatehouse.oauth.model import SCOPES, ClaimContent, ClaimSource, Client, ClientProfile, TokenSettings

CLIENT_HEADINGS: Final = ("client_id", "name", "profile", "redirects", "scopes", "created")


def client_row(found: Client) -> tuple[str, ...]:
    return (
        found.client_id,
        found.name,
        found.profile.value,
        " ".join(found.redirect_uris + found.redirect_hosts),
        " ".join(found.scopes),
        format_time(found.created_at),
    )


def client_entry(found: Client) -> dict[str, object]:
    return {
        "client_id": found.client_id,
        "name": found.name,
        "profile": found.profile.value,
        "application_id": found.application_id,
        "redirect_uris": found.redirect_uris,
        "redirect_hosts": found.redirect_hosts,
        "post_logout_uris": found.post_logout_uris,
        "scopes": found.scopes,
        "origins": found.origins,
        "backchannel_logout_uri": found.backchannel_logout_uri,
        "jwks": dict(found.jwks),
        "claims": {
            claim: {"application_id": source.application_id, "told": source.told.value}
            for claim, source in found.claims.items()
        },
        "id_token_signed_response_alg": found.token_settings.id_token_alg.value,
        "access_seconds": found.token_settings.access_seconds,
        "refresh_seconds": found.token_settings.refresh_seconds,
        "refresh_grace_seconds": found.token_settings.refresh_grace_seconds,
        "device_grant": found.device_grant,
        "explain_errors": found.explain_errors,
        "first_party": found.first_party,
        "may_exchange": found.may_exchange,
        "require_pkce": found.require_pkce,
        "public": found.public,
        "secrets": [
            {"slot": secret.slot, "created_at": secret.created_at, "expires_at": secret.expires_at}
            for secret in found.secrets
        ],
        "created_at": found.created_at,
        "version": found.version,
    }


# `gatehouse client`: OAuth clients.


DAY: Final = 86_400
DEFAULT_TOKEN_SETTINGS: Final = TokenSettings()


@click.group()
def client() -> None:
    """Create, show and remove OAuth clients, rotate their secrets and revoke their grants."""


class ClaimOption(click.ParamType[tuple[str, ClaimSource]]):
    """NAME=APPLICATION_ID:TOLD, as groups=50001:roles."""

    name = "claim"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ClaimSource]:
        claim, _, source = str(value).partition("=")
        number, _, told = source.partition(":")
        if not claim or not number.isdecimal() or told not in list(ClaimContent):
            self.fail(f"{value!r} is not NAME=APPLICATION_ID:{'|'.join(ClaimContent)}", param, ctx)
        return claim, ClaimSource(application_id=int(number), told=ClaimContent(told))


@client.command()
@common_options
@json_option
@click.argument("client_id")
@click.option("--name", required=True, help="Display name on the sign-in page.")
@click.option(
    "--profile",
    type=click.Choice([profile.value for profile in ClientProfile]),
    default=ClientProfile.NATIVE.value,
    show_default=True,
    help="native: dialect of the interface document; oidc: standard OpenID Connect.",
)
@click.option("--redirect-uri", multiple=True, help="Exact redirect URI; repeatable.")
@click.option("--redirect-host", multiple=True, help="Host allowed in redirect URIs (native); repeatable.")
@click.option("--post-logout-uri", multiple=True, help="Post-logout redirect URI; repeatable.")
@click.option(
    "--scope",
    multiple=True,
    type=click.Choice(SCOPES),
    default=SCOPES,
    show_default="all",
    help="Allowed scope; repeatable.",
)
@click.option("--application-id", type=click.IntRange(min=1), help="Application whose login permissions apply.")
@click.option("--origin", multiple=True, help="Origin allowed to call the token endpoint (CORS); repeatable.")
@click.option("--backchannel-logout-uri", default="", help="Back-channel logout URL.")
@click.option(
    "--jwks",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File with the client's public keys (JWK set).",
)
@click.option(
    "--claim",
    multiple=True,
    type=ClaimOption(),
    metavar="NAME=APPLICATION_ID:CONTENT",
    help="Add a claim with a person's roles, groups or permissions in an application; repeatable.",
)
@click.option(
    "--id-token-alg",
    type=click.Choice([alg.value for alg in Algorithm]),
    default=DEFAULT_TOKEN_SETTINGS.id_token_alg.value,
    show_default=True,
    help="Signing algorithm for ID tokens.",
)
@click.option(
    "--access-seconds",
    default=DEFAULT_TOKEN_SETTINGS.access_seconds,
    show_default=True,
    help="Access token lifetime.",
)
@click.option(
    "--refresh-seconds",
    default=DEFAULT_TOKEN_SETTINGS.refresh_seconds,
    show_default=True,
    help="Refresh token lifetime.",
)
@click.option(
    "--refresh-grace-seconds", type=int, help="How long concurrent refreshes get the same token.  [default: setting]"
)
@click.option("--device-grant", is_flag=True, help="Allow the device grant (oidc).")
@click.option("--explain-errors", is_flag=True, help="Show error details for developers on error pages.")
@click.option(
    "--may-exchange/--no-exchange", default=None, help="Allow exchangeToken.  [default: depends on profile]"
)
@click.option("--first-party", is_flag=True, help="Trusted: skip consent.")
@click.option("--require-pkce", is_flag=True, help="Require PKCE.")
@click.option("--public", is_flag=True, help="Public client without a secret: SPA, mobile or desktop app (oidc).")
def create(
    invocation: Invocation,
    *,
    client_id: str,
    name: str,
    profile: str,
    redirect_uri: tuple[str, ...],
    redirect_host: tuple[str, ...],
    post_logout_uri: tuple[str, ...],
    scope: tuple[str, ...],
    application_id: int | None,
    origin: tuple[str, ...],
    backchannel_logout_uri: str,
    jwks: Path | None,
    claim: tuple[tuple[str, ClaimSource], ...],
    id_token_alg: str,
    access_seconds: int,
    refresh_seconds: int,
    refresh_grace_seconds: int | None,
    device_grant: bool,
    explain_errors: bool,
    may_exchange: bool | None,
    first_party: bool,
    require_pkce: bool,
    public: bool,
    as_json: bool,
) -> None:
    """Create a client and print its secret, which is shown only once."""
    keys = {} if jwks is None else read_jwks(jwks)
    tokens = TokenSettings(
        id_token_alg=Algorithm(id_token_alg),
        access_seconds=access_seconds,
        refresh_seconds=refresh_seconds,
        refresh_grace_seconds=refresh_grace_seconds,
    )

    async def work(services: Services) -> str | None:
        made = Client(
            client_id=client_id,
            name=name,
            profile=ClientProfile(profile),
            application_id=application_id,
            redirect_uris=redirect_uri,
            redirect_hosts=redirect_host,
            post_logout_uris=post_logout_uri,
            scopes=scope,
            origins=origin,
            backchannel_logout_uri=backchannel_logout_uri,
            jwks=keys,
            claims=dict(claim),
            token_settings=tokens,
            device_grant=device_grant,
            explain_errors=explain_errors,
            first_party=first_party,
            may_exchange=profile == ClientProfile.NATIVE.value if may_exchange is None else may_exchange,  # R2
            require_pkce=require_pkce,
            public=public,
            created_at=services.clock.now(),
        )
        return await services.clients.create(made, operator_origin())

    print_secret(client_id, run_with_services(invocation, work), as_json=as_json)


def read_jwks(path: Path) -> Mapping[str, object]:
    try:
        found = json.loads(path.read_text())
    except ValueError:
        raise click.UsageError(f"{path} is not valid JSON") from None
    if not isinstance(found, dict):
        raise click.UsageError(f"{path} is not a JWK set")
    return found


@client.command()
@common_options
@json_option
@click.argument("client_id")
def show(invocation: Invocation, *, client_id: str, as_json: bool) -> None:
    """Show a client, without secrets."""

    async def work(services: Services) -> Client:
        return await services.clients.get(client_id)

    found = client_entry(run_with_services(invocation, work))
    if as_json:
        print_json(found)
    else:
        print_facts(found)


@client.command()
@common_options
@click.argument("client_id")
def remove(invocation: Invocation, *, client_id: str) -> None:
    """Remove a client and all its grants. Its ID is never reused."""

    async def work(services: Services) -> None:
        await services.clients.remove(client_id, operator_origin())

    run_with_services(invocation, work)
    click.echo(f"Client {client_id} removed.", err=True)


@client.command("revoke-tokens")
@common_options
@json_option
@click.argument("client_id")
def revoke_tokens(invocation: Invocation, *, client_id: str, as_json: bool) -> None:
    """Revoke all grants of a client: its codes, access tokens and refresh tokens."""

    async def work(services: Services) -> int:
        return await services.clients.revoke_tokens(client_id, operator_origin())

    ended = run_with_services(invocation, work)
    if as_json:
        print_json({"client_id": client_id, "revoked": ended})
    else:
        click.echo(f"Revoked {ended} sign-ins of {client_id}.", err=True)


@client.command("rotate-secret")
@common_options
@json_option
@click.argument("client_id")
def rotate_secret(invocation: Invocation, *, client_id: str, as_json: bool) -> None:
    """Create a new secret for a client and print it; the previous one stays valid for a week."""

    async def work(services: Services) -> str:
        return await services.clients.rotate_secret(client_id, operator_origin())

    print_secret(client_id, run_with_services(invocation, work), as_json=as_json)
    if not as_json:
        click.echo(f"The previous secret stays valid for {OLD_SECRET_LIFETIME // DAY} days.", err=True)


def print_secret(client_id: str, secret: str | None, *, as_json: bool) -> None:
    if as_json:
        print_json({"client_id": client_id, "client_secret": secret})
    elif secret is None:
        click.echo(f"{client_id} is a public client and has no secret.", err=True)
    else:
        click.echo(secret)
        click.echo("Copy it now. It won't be shown again.", err=True)


@client.command("list")
@common_options
@json_option
def list_clients(invocation: Invocation, *, as_json: bool) -> None:
    """List clients."""

    async def work(services: Services) -> Sequence[Client]:
        return await services.clients.list()

    found = run_with_services(invocation, work)
    if as_json:
        print_json([client_entry(one) for one in found])
    else:
        print_table(CLIENT_HEADINGS, [client_row(one) for one in found])
