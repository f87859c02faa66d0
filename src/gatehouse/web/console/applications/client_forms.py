"""OAuth clients as forms write them."""

from enum import StrEnum
from typing import Any, Final

from msgspec.structs import replace

from gatehouse.fields.derive import rows_by_section, with_members
from gatehouse.oauth.client_document import replace_values
from gatehouse.oauth.clients import SIGN_IN_FIELDS
from gatehouse.oauth.errors import BadClient
from gatehouse.oauth.model import SINGLE_FIELDS, Client, ClientProfile, new_token_settings
from gatehouse.web.console.field_forms import YES, form_members, form_values, typed_values
from gatehouse.web.pages.forms import CsrfForm

FORM_FIELDS: Final = tuple(one for one in SINGLE_FIELDS if one.field.section is not None)
FORM_ROWS: Final = rows_by_section(FORM_FIELDS)
NO_SIGN_IN: Final = Client(client_id="", name="", scopes=(), may_exchange=False, created_at=0)


class ClientKind(StrEnum):
    """What a new client is; the texts are `applications.client_kind_<value>` and `…_hint`."""

    WEB = "web"  # has a secret
    PAGE = "page"  # a public client
    MACHINE = "machine"  # acts for itself
    NATIVE = "native"


@with_members(lambda: form_members(FORM_FIELDS))
class ClientForm(CsrfForm, frozen=True, kw_only=True):
    """Lists have one entry per line; browsers do not send a box that is not checked."""

    client_id: str = ""
    client_name: str = ""
    kind: str = ClientKind.WEB.value
    id_token_alg: str = ""  # the default of a new client; an existing one keeps its own
    version: int = 0


def new_form() -> ClientForm:
    values: dict[str, Any] = {"scopes": ("openid", "email", "profile"), "require_pkce": YES}
    return ClientForm(**values)


def form_of(client: Client) -> ClientForm:
    return ClientForm(
        client_id=client.client_id,
        client_name=client.name,
        kind=kind_of_client(client).value,
        version=client.version,
        **form_values(client, FORM_FIELDS),
    )


def kind_of_client(client: Client) -> ClientKind:
    if client.profile is ClientProfile.NATIVE:
        return ClientKind.NATIVE
    if client.machine:
        return ClientKind.MACHINE
    return ClientKind.PAGE if client.public else ClientKind.WEB


def new_client(form: ClientForm, application_id: int, *, now: int) -> Client:
    if form.kind not in list(ClientKind):
        raise BadClient("kind: choose a kind from the list").on_screen("choose_client_kind")
    profile = ClientProfile.NATIVE if form.kind == ClientKind.NATIVE else ClientProfile.OIDC
    blank = Client(
        client_id=form.client_id.strip(),
        name="",
        profile=profile,
        application_id=application_id,
        public=form.kind == ClientKind.PAGE,
        machine=form.kind == ClientKind.MACHINE,
        token_settings=new_token_settings(profile),
        created_at=now,
    )
    return replace(apply_form(blank, form), version=blank.version)


def apply_form(client: Client, form: ClientForm) -> Client:
    """The client with what the form may change, and the version that the form was made from."""
    form = replace(form, id_token_alg=form.id_token_alg or client.token_settings.id_token_alg.value)
    values = {**typed_values(form, FORM_FIELDS), "name": form.client_name.strip()}
    changed = replace_values(client, values)
    if client.machine:  # the form hides what only clients that sign people in have
        changed = replace(changed, **{name: getattr(NO_SIGN_IN, name) for name in SIGN_IN_FIELDS})
        changed = replace(changed, scopes=changed.own_api_scopes)
    return replace(changed, version=form.version)
