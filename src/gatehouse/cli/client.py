"""`gatehouse client`: OAuth clients."""

from collections.abc import Sequence
from typing import Final

import click

from gatehouse.app.house import House
from gatehouse.cli.common import Invocation, common_options, json_option, print_json
from gatehouse.cli.house import in_house, operator
from gatehouse.cli.output import moment, print_table
from gatehouse.oauth.clients import OLD_SECRET_LIVES
from gatehouse.oauth.model import SCOPES, Client, Profile

DAY: Final = 86_400
LISTED: Final = ("client_id", "name", "profile", "redirects", "scopes", "created")


@click.group()
def client() -> None:
    """Create and list OAuth clients, and give them new secrets."""


@client.command()
@common_options
@json_option
@click.argument("client_id")
@click.option("--name", required=True, help="Name that people see when they sign in.")
@click.option(
    "--profile",
    type=click.Choice([profile.value for profile in Profile]),
    default=Profile.NATIVE.value,
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
    first_party: bool,
    require_pkce: bool,
    public: bool,
    as_json: bool,
) -> None:
    """Make a client and print its secret, which is never shown again."""

    async def work(house: House) -> str | None:
        made = Client(
            client_id=client_id,
            name=name,
            profile=Profile(profile),
            application_id=application_id,
            redirect_uris=redirect_uri,
            redirect_hosts=redirect_host,
            post_logout_uris=post_logout_uri,
            scopes=scope,
            first_party=first_party,
            may_exchange=profile == Profile.NATIVE.value,  # R2
            require_pkce=require_pkce,
            public=public,
            created_at=house.clock.now(),
        )
        return await house.clients.create(made, operator())

    print_secret(client_id, in_house(invocation, work), as_json=as_json)


@client.command("rotate-secret")
@common_options
@json_option
@click.argument("client_id")
def rotate_secret(invocation: Invocation, *, client_id: str, as_json: bool) -> None:
    """Give a client a new secret and print it; the one before stays good for a week."""

    async def work(house: House) -> str:
        return await house.clients.rotate_secret(client_id, operator())

    print_secret(client_id, in_house(invocation, work), as_json=as_json)
    if not as_json:
        click.echo(f"The secret before it is accepted for {OLD_SECRET_LIVES // DAY} more days.", err=True)


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

    async def work(house: House) -> Sequence[Client]:
        return await house.clients.list()

    found = in_house(invocation, work)
    if as_json:
        print_json([entry(one) for one in found])
    else:
        print_table(LISTED, [row(one) for one in found])


def row(found: Client) -> tuple[str, ...]:
    return (
        found.client_id,
        found.name,
        found.profile.value,
        " ".join(found.redirect_uris + found.redirect_hosts),
        " ".join(found.scopes),
        moment(found.created_at),
    )


def entry(found: Client) -> dict[str, object]:
    return {
        "client_id": found.client_id,
        "name": found.name,
        "profile": found.profile.value,
        "application_id": found.application_id,
        "redirect_uris": found.redirect_uris,
        "redirect_hosts": found.redirect_hosts,
        "post_logout_uris": found.post_logout_uris,
        "scopes": found.scopes,
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
