"""`gatehouse client`: OAuth clients."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from gatehouse.app.house import Services
from gatehouse.cli.client_facts import CLIENT_HEADINGS, client_entry, client_row
from gatehouse.cli.common import Invocation, common_options, json_option, print_json
from gatehouse.cli.house import operator_origin, run_with_services
from gatehouse.cli.output import print_facts, print_table
from gatehouse.keys.model import Algorithm
from gatehouse.oauth.clients import OLD_SECRET_LIFETIME
from gatehouse.oauth.model import SCOPES, ClaimContent, ClaimSource, Client, ClientProfile, TokenSettings

DAY: Final = 86_400
DEFAULT_TOKEN_SETTINGS: Final = TokenSettings()


@click.group()
def client() -> None:
    """Create, show and remove OAuth clients, give them new secrets, and end what they were granted."""


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
@click.option("--name", required=True, help="Name that people see when they sign in.")
@click.option(
    "--profile",
    type=click.Choice([profile.value for profile in ClientProfile]),
    default=ClientProfile.NATIVE.value,
    show_default=True,
    help="Dialect: native is the interface document's own, oidc plain OpenID Connect.",
)
@click.option("--redirect-uri", multiple=True, help="Exact redirect URI; may be repeated.")
@click.option("--redirect-host", multiple=True, help="Host any redirect URI may be on (native); may be repeated.")
@click.option("--post-logout-uri", multiple=True, help="Where to after signing out; may be repeated.")
@click.option(
    "--scope",
    multiple=True,
    type=click.Choice(SCOPES),
    default=SCOPES,
    show_default="all",
    help="Scope it may ask for; may be repeated.",
)
@click.option("--application-id", type=click.IntRange(min=1), help="Application whose login rules apply.")
@click.option("--origin", multiple=True, help="Origin whose pages may call the token endpoint; may be repeated.")
@click.option("--backchannel-logout-uri", default="", help="Address that is told when somebody signs out.")
@click.option(
    "--jwks",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File with its public keys (JWK set).",
)
@click.option(
    "--claim",
    multiple=True,
    type=ClaimOption(),
    metavar="NAME=APPLICATION_ID:TOLD",
    help="Claim that tells a person's roles, groups or rules in an application; may be repeated.",
)
@click.option(
    "--id-token-alg",
    type=click.Choice([alg.value for alg in Algorithm]),
    default=DEFAULT_TOKEN_SETTINGS.id_token_alg.value,
    show_default=True,
    help="Algorithm its id_tokens are signed with.",
)
@click.option(
    "--access-seconds",
    default=DEFAULT_TOKEN_SETTINGS.access_seconds,
    show_default=True,
    help="Life of an access token.",
)
@click.option(
    "--refresh-seconds",
    default=DEFAULT_TOKEN_SETTINGS.refresh_seconds,
    show_default=True,
    help="Life of a refresh token.",
)
@click.option(
    "--refresh-grace-seconds", type=int, help="How long a parallel refresh gets the same token.  [default: setting]"
)
@click.option("--device-grant", is_flag=True, help="May sign people in on devices without a browser (oidc).")
@click.option("--explain-errors", is_flag=True, help="Tell its developer more on error pages.")
@click.option("--may-exchange/--no-exchange", default=None, help="May use exchangeToken.  [default: as its profile]")
@click.option("--first-party", is_flag=True, help="Ours: nobody is asked for consent.")
@click.option("--require-pkce", is_flag=True, help="Refuse authorization requests without PKCE.")
@click.option("--public", is_flag=True, help="Has no secret, as an application on people's devices (oidc).")
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
    """Make a client and print its secret, which is never shown again."""
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
        raise click.UsageError(f"{path} is not JSON") from None
    if not isinstance(found, dict):
        raise click.UsageError(f"{path} is not a JWK set")
    return found


@client.command()
@common_options
@json_option
@click.argument("client_id")
def show(invocation: Invocation, *, client_id: str, as_json: bool) -> None:
    """Print what is kept about a client, secrets left out."""

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
    """Take a client away, with everything people granted it. Its id is never given again."""

    async def work(services: Services) -> None:
        await services.clients.remove(client_id, operator_origin())

    run_with_services(invocation, work)
    click.echo(f"{client_id} is removed.", err=True)


@client.command("revoke-tokens")
@common_options
@json_option
@click.argument("client_id")
def revoke_tokens(invocation: Invocation, *, client_id: str, as_json: bool) -> None:
    """End everything people have granted a client: its codes, access tokens and refresh tokens."""

    async def work(services: Services) -> int:
        return await services.clients.revoke_tokens(client_id, operator_origin())

    ended = run_with_services(invocation, work)
    if as_json:
        print_json({"client_id": client_id, "revoked": ended})
    else:
        click.echo(f"{ended} sign-ins to {client_id} are revoked.", err=True)


@client.command("rotate-secret")
@common_options
@json_option
@click.argument("client_id")
def rotate_secret(invocation: Invocation, *, client_id: str, as_json: bool) -> None:
    """Give a client a new secret and print it; the one before stays good for a week."""

    async def work(services: Services) -> str:
        return await services.clients.rotate_secret(client_id, operator_origin())

    print_secret(client_id, run_with_services(invocation, work), as_json=as_json)
    if not as_json:
        click.echo(f"The secret before it is accepted for {OLD_SECRET_LIFETIME // DAY} more days.", err=True)


def print_secret(client_id: str, secret: str | None, *, as_json: bool) -> None:
    if as_json:
        print_json({"client_id": client_id, "client_secret": secret})
    elif secret is None:
        click.echo(f"{client_id} is public and has no secret.", err=True)
    else:
        click.echo(secret)
        click.echo("Keep it now: it is never shown again.", err=True)


@client.command("list")
@common_options
@json_option
def list_clients(invocation: Invocation, *, as_json: bool) -> None:
    """List the clients."""

    async def work(services: Services) -> Sequence[Client]:
        return await services.clients.list()

    found = run_with_services(invocation, work)
    if as_json:
        print_json([client_entry(one) for one in found])
    else:
        print_table(CLIENT_HEADINGS, [client_row(one) for one in found])
