"""`gatehouse client`: OAuth clients; a secret is shown once, when it is made."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
import msgspec
from msgspec.structs import replace

from gatehouse.app.services import Services
from gatehouse.cli.common import Invocation, common_options, json_option, print_json
from gatehouse.cli.field_options import field_options, read_json_file
from gatehouse.cli.groups import CommandGroup
from gatehouse.cli.output import format_time, print_table
from gatehouse.cli.records import print_record
from gatehouse.cli.services import operator_origin, run_with_services
from gatehouse.fields.model import DescribedField, Field, Kind
from gatehouse.keys.model import Algorithm
from gatehouse.oauth.client_commands import OLD_SECRET_LIFETIME
from gatehouse.oauth.client_document import client_document, replace_values
from gatehouse.oauth.model import (
    ALLOWED_SCOPES,
    DEFAULT_SCOPES,
    SINGLE_FIELDS,
    ClaimContent,
    ClaimSource,
    Client,
    ClientProfile,
    new_token_settings,
)
from gatehouse.oauth.token_command import token_command

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
    secrets = [
        {"slot": secret.slot, "created_at": secret.created_at, "expires_at": secret.expires_at}
        for secret in found.secrets
    ]
    record: dict[str, object] = {}
    for name, value in client_document(found).items():
        record |= value if name == "token_settings" and isinstance(value, dict) else {name: value}
    return {**record, "secrets": secrets, "created_at": found.created_at, "version": found.version}


DAY: Final = 86_400
NEW_CLIENT_PROFILE: Final = ClientProfile.OIDC  # as in the console; the API and files keep native (R9)


@click.group(cls=CommandGroup)
def client() -> None:
    """Create, show and remove OAuth clients, rotate their secrets and revoke their grants."""


class ClaimOption(click.ParamType[tuple[str, ClaimSource]]):
    """NAME=APPLICATION_ID:TOLD, as groups=50001:roles."""

    name = "claim"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ClaimSource]:
        claim, _, source = str(value).partition("=")
        number, _, content = source.partition(":")
        if not claim or not number.isdecimal() or content not in list(ClaimContent):
            self.fail(f"{value!r} is not NAME=APPLICATION_ID:{'|'.join(ClaimContent)}", param, ctx)
        return claim, ClaimSource(application_id=int(number), told=ClaimContent(content))


OPTION_ARGUMENTS: Final[Mapping[Kind, dict[str, Any]]] = {
    Kind.LIST: {"multiple": True},
    Kind.SCOPES: {
        "multiple": True,
        "type": click.Choice(ALLOWED_SCOPES),
        "show_default": " ".join(DEFAULT_SCOPES),
    },
    Kind.CLAIMS: {"multiple": True, "type": ClaimOption(), "metavar": "NAME=APPLICATION_ID:CONTENT"},
    Kind.DOCUMENT: {"type": click.Path(path_type=Path, exists=True, dir_okay=False)},
}


def option_arguments(one: DescribedField[Field]) -> dict[str, Any]:
    """Return the click arguments of an option; a flag with two names is None unless it is set."""
    if one.kind is Kind.FLAG:
        return {"default": None} if "/" in one.field.option else {"is_flag": True}
    if one.kind is Kind.CHOICE:
        choices = click.Choice([member.value for member in one.type])
        if one.type is Algorithm:
            return {"type": choices, "default": None}
        default = NEW_CLIENT_PROFILE if one.type is ClientProfile else one.default
        return {"type": choices, "default": default.value, "show_default": True}
    if one.kind is Kind.NUMBER:
        limits = click.IntRange(min=1) if one.field.minimum and one.field.maximum is None else int
        return {"type": limits, "default": one.default, "show_default": one.default is not None}
    if one.kind in OPTION_ARGUMENTS:
        return OPTION_ARGUMENTS[one.kind]
    return {"required": True} if one.is_required else {"default": one.default}


def option_value(one: DescribedField[Field], given: Any) -> Any:  # noqa: ANN401 - the type of the field
    match one.kind:
        case Kind.CHOICE:
            return None if given is None else one.type(given)
        case Kind.CLAIMS:
            return dict(given)
        case Kind.DOCUMENT:
            return one.default if given is None else read_document(one, given)
        case _:
            return given


@client.command()
@common_options
@json_option
@click.argument("client_id")
@field_options(SINGLE_FIELDS, option_arguments)
def create(invocation: Invocation, *, client_id: str, as_json: bool, **given: Any) -> None:  # noqa: ANN401 - options
    """Create a client and print its secret, which is shown only once."""
    described = client_from_options(client_id, given)

    async def work(services: Services) -> tuple[str | None, str]:
        client = replace(described, created_at=services.clock.now())
        secret = await services.oauth.clients.commands.create(client, operator_origin())
        return secret, await machine_command(services, client, secret) if client.machine and secret else ""

    secret, command = run_with_services(invocation, work)
    print_secret(client_id, secret, as_json=as_json)
    if command and not as_json:
        click.echo(f"Get a token:\n  {command}", err=True)


def client_from_options(client_id: str, given: Mapping[str, Any]) -> Client:
    """Return the client that the options of `client create` describe."""
    values = {one.name: option_value(one, given[one.name]) for one in SINGLE_FIELDS}
    is_native = values["profile"] is ClientProfile.NATIVE
    values["scopes"] = values["scopes"] or (() if values["machine"] else DEFAULT_SCOPES)
    alg = new_token_settings(values["profile"]).id_token_alg
    for name, default in {"may_exchange": is_native, "require_pkce": not is_native, "id_token_alg": alg}.items():
        if values[name] is None:
            values[name] = default  # R2, R9
    return replace_values(Client(client_id=client_id, name="", created_at=0), values)


async def machine_command(services: Services, client: Client, secret: str) -> str:
    """Return the command that gets a token for the API of the client's application."""
    application = None
    if client.application_id is not None:
        application = await services.storage.applications.application(client.application_id)
    return token_command(services.base_url, client, secret, application.api if application else None)


def read_document(one: DescribedField[Field], path: Path) -> object:
    try:
        return msgspec.convert(read_json_file(path), one.type)
    except msgspec.ValidationError as error:
        raise click.UsageError(f"{path}: {error}") from None


@client.command()
@common_options
@json_option
@click.argument("client_id")
def show(invocation: Invocation, *, client_id: str, as_json: bool) -> None:
    """Show a client, without secrets."""

    async def work(services: Services) -> Client:
        return await services.oauth.clients.commands.get(client_id)

    print_record(client_entry(run_with_services(invocation, work)), as_json=as_json)


@client.command()
@common_options
@click.argument("client_id")
def remove(invocation: Invocation, *, client_id: str) -> None:
    """Remove a client and all its grants. Its ID is never reused."""

    async def work(services: Services) -> None:
        await services.oauth.clients.commands.remove(client_id, operator_origin())

    run_with_services(invocation, work)
    click.echo(f"Client {client_id} removed.", err=True)


@client.command("revoke-tokens")
@common_options
@json_option
@click.argument("client_id")
def revoke_tokens(invocation: Invocation, *, client_id: str, as_json: bool) -> None:
    """Revoke all grants of a client (codes, access tokens, refresh tokens) and the tokens it got for itself."""

    async def work(services: Services) -> int:
        return await services.oauth.clients.commands.revoke_tokens(client_id, operator_origin())

    ended = run_with_services(invocation, work)
    if as_json:
        print_json({"client_id": client_id, "revoked": ended})
    else:
        click.echo(f"Revoked {ended} sign-ins of {client_id}, and its own tokens.", err=True)


@client.command("rotate-secret")
@common_options
@json_option
@click.argument("client_id")
def rotate_secret(invocation: Invocation, *, client_id: str, as_json: bool) -> None:
    """Create a new secret for a client and print it; the previous one stays valid for a week."""

    async def work(services: Services) -> str:
        return await services.oauth.clients.commands.rotate_secret(client_id, operator_origin())

    print_secret(client_id, run_with_services(invocation, work), as_json=as_json)
    if not as_json:
        click.echo(f"The previous secret stays valid for {OLD_SECRET_LIFETIME // DAY} days.", err=True)


def print_secret(client_id: str, secret: str | None, *, as_json: bool) -> None:
    if as_json:
        print_json({"client_id": client_id, "client_secret": secret})
    elif secret is None:
        click.echo(f"{client_id} has no secret.", err=True)
    else:
        click.echo(secret)
        click.echo("Copy it now. It won't be shown again.", err=True)


@client.command("list")
@common_options
@json_option
def list_clients(invocation: Invocation, *, as_json: bool) -> None:
    """List clients."""

    async def work(services: Services) -> Sequence[Client]:
        return await services.oauth.clients.commands.list()

    found = run_with_services(invocation, work)
    if as_json:
        print_json([client_entry(one) for one in found])
    else:
        print_table(CLIENT_HEADINGS, [client_row(one) for one in found])
