"""The settings of a sign-in provider; there is one table of them for each provider, by its ID."""

import re
from typing import Annotated, Final

from msgspec import Struct

from gatehouse.kernel.stored_settings import BadSetting
from gatehouse.kernel.text import is_plain_line
from gatehouse.kernel.web_urls import parse_web_url
from gatehouse.providers.kinds import PRESETS
from gatehouse.settings import grammar
from gatehouse.settings.info import SettingField, text
from gatehouse.settings.secret import Secret

MAX_PROVIDERS: Final = 50
MAX_NAME_LENGTH: Final = 40
NO_SECRET: Final = Secret()
TENANT: Final = re.compile(r"[A-Za-z0-9.-]{1,100}", re.ASCII)
APPLICATION_ID: Final = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)
TICKET_AUDIENCE: Final = re.compile(r"[1-9][0-9]{0,8}:[!-+\--~]{1,200}", re.ASCII)  # no comma: it separates entries
TICKET_IDENTITY: Final = re.compile(r"[A-Za-z0-9._-]{1,100}", re.ASCII)
SCOPE: Final = re.compile(r"[!#-\[\]-~]{1,100}", re.ASCII)  # RFC 6749 §3.3
KEEP: Final = ":keep"
TAG_RULE: Final = re.compile(rf"[^=]{{1,64}}=[^:]{{0,100}}:(.{{1,64}}?)({KEEP})?")
SERVICE_TAG: Final = re.compile(r"guest|linked_.*|email_verified|phone_verified|2step.*")


def provider_name(given: str) -> None:
    if len(given) > MAX_NAME_LENGTH:
        raise BadSetting(f"must be at most {MAX_NAME_LENGTH} characters").on_screen(
            "text_most", longest=MAX_NAME_LENGTH
        )


def issuer_url(given: str) -> None:
    url = parse_web_url(given)
    if url is None or url.fragment or "?" in url.target or len(given) > 1_000:  # noqa: PLR2004
        raise BadSetting("must be a URL without query and fragment, like https://login.studio.example").on_screen(
            "issuer_url"
        )


def tenant_name(given: str) -> None:
    if not TENANT.fullmatch(given):
        raise BadSetting("must be the ID or the domain of a tenant, or common, organizations or consumers").on_screen(
            "tenant"
        )


def application_id(given: str) -> None:
    if not APPLICATION_ID.fullmatch(given):
        raise BadSetting("must be the ID of an application, which is a number").on_screen("application_id")


def ticket_audience(given: str) -> None:
    if not TICKET_AUDIENCE.fullmatch(given):
        raise BadSetting("must be APPLICATION:AUDIENCE, like 7:480").on_screen("ticket_audience")


def steam_identity(given: str) -> None:
    if not TICKET_IDENTITY.fullmatch(given):
        raise BadSetting("must be 1 to 100 letters, digits, dots, hyphens and underscores").on_screen(
            "ticket_identity"
        )


def scope(given: str) -> None:
    if not SCOPE.fullmatch(given):
        raise BadSetting("must be a scope without spaces and quotes").on_screen("provider_scope")


def tag_rule(given: str) -> None:
    found = TAG_RULE.fullmatch(given)
    if found is None:
        raise BadSetting("must be CLAIM=VALUE:TAG or CLAIM=VALUE:TAG:keep, like department=art:artist").on_screen(
            "tag_rule"
        )
    tag = found[1]
    if SERVICE_TAG.fullmatch(tag) or "," in tag or not is_plain_line(tag):
        raise BadSetting(f"{tag} cannot be set: it is managed automatically or contains a comma").on_screen(
            "tag_kept", tag=tag
        )


class ProviderSettings(Struct, frozen=True, kw_only=True):
    """A sign-in provider. You choose `<id>`: a lower-case letter, then up to 19 lower-case letters and digits."""

    kind: Annotated[
        str,
        SettingField("Kind of the provider; it cannot be changed.", choices=tuple(PRESETS), fixed=True, stored=True),
    ] = "oidc"
    name: Annotated[
        str, text("Name on buttons and pages.", provider_name, without="that of its kind, or the ID", stored=True)
    ] = ""
    enabled: Annotated[
        bool, SettingField("Offer this provider; turn it off while it is incomplete.", stored=True)
    ] = True
    issuer: Annotated[
        str,
        text(
            "Issuer of an `oidc` provider, whose discovery document is read, or the address of a server that is "
            "compatible with another kind, like GitHub Enterprise; it cannot be changed.",
            issuer_url,
            without="that of its kind",
            fixed=True,
            stored=True,
            called=True,
        ),
    ] = ""
    tenant: Annotated[
        str,
        text(
            "Tenant of a `microsoft` provider: its ID or domain, or `common`, `organizations`, `consumers`; "
            "it cannot be changed.",
            tenant_name,
            without="`common`",
            fixed=True,
            stored=True,
        ),
    ] = ""
    client_id: Annotated[str, SettingField("Client ID that the provider gave; none for `steam`.", stored=True)] = ""
    client_secret: Annotated[Secret, SettingField("Client secret that the provider gave.", stored=True)] = NO_SECRET
    team_id: Annotated[str, SettingField("Team ID of an `apple` provider.", stored=True)] = ""
    key_id: Annotated[str, SettingField("ID of the private key of an `apple` provider.", stored=True)] = ""
    private_key: Annotated[
        Secret,
        SettingField(
            "Private key of an `apple` provider: the .p8 file without its first and last line.", stored=True
        ),
    ] = NO_SECRET
    scopes: Annotated[
        tuple[str, ...], text("Scopes to ask for.", scope, without="those that sign-in needs", stored=True)
    ] = ()
    applications: Annotated[
        tuple[str, ...],
        text(
            "IDs of the applications that offer it.", application_id, without="all, and the account page", stored=True
        ),
    ] = ()
    create_accounts: Annotated[
        bool,
        SettingField(
            "Create an account for a person who has none; otherwise only linked ones sign in. Without a verified "
            "email it is recovered by another connected sign-in or a recovery code.",
            stored=True,
        ),
    ] = False
    tickets: Annotated[
        tuple[str, ...],
        text(
            "Tickets of game clients that may sign in, as `APPLICATION:AUDIENCE`: the ID of the application, and the "
            "app ID at Steam or the audience of the token.",
            ticket_audience,
            without="none",
            stored=True,
        ),
    ] = ()
    ticket_identity: Annotated[
        str,
        text(
            "Identity that a game passes to `GetAuthTicketForWebApi`, for a `steam` provider.",
            steam_identity,
            without="the host of `server.base_url`",
            stored=True,
        ),
    ] = ""
    keys_url: Annotated[
        str,
        text(
            "URL of the key set of a `jwt` provider, which has no discovery document.",
            issuer_url,
            stored=True,
            called=True,
        ),
    ] = ""
    publisher_key: Annotated[
        Secret, SettingField("Publisher Web API key of a `steam` provider, for tickets.", stored=True)
    ] = NO_SECRET
    allowed_domains: Annotated[
        tuple[str, ...],
        text("Domains of verified email addresses that may sign in.", grammar.domain, without="all", stored=True),
    ] = ()
    tags: Annotated[
        tuple[str, ...],
        text(
            "Tags to set from claims, as `CLAIM=VALUE:TAG`, at every sign-in. A tag is removed without the claim and "
            "when the person disconnects; `CLAIM=VALUE:TAG:keep` keeps it until the provider says otherwise.",
            tag_rule,
            stored=True,
        ),
    ] = ()
