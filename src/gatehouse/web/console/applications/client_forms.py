"""OAuth clients as forms write them."""

from typing import Any, Final

from msgspec.structs import replace

from gatehouse.fields.derive import rows_by_section, with_members
from gatehouse.oauth.client_document import replace_values
from gatehouse.oauth.errors import BadClient
from gatehouse.oauth.model import SINGLE_FIELDS, Client, ClientProfile, new_token_settings
from gatehouse.web.console.field_forms import YES, checkbox_value, form_members, form_values, typed_values
from gatehouse.web.pages.forms import CsrfForm

FORM_FIELDS: Final = tuple(one for one in SINGLE_FIELDS if one.field.section is not None)
FORM_ROWS: Final = rows_by_section(FORM_FIELDS)


@with_members(lambda: form_members(FORM_FIELDS))
class ClientForm(CsrfForm, frozen=True, kw_only=True):
    """Lists have one entry per line; browsers do not send a box that is not checked."""

    client_id: str = ""
    client_name: str = ""
    profile: str = ClientProfile.OIDC.value
    id_token_alg: str = ""  # the default of a new client; an existing one keeps its own
    public: str = ""
    version: int = 0


def new_form() -> ClientForm:
    values: dict[str, Any] = {"scopes": ("openid", "email", "profile"), "require_pkce": YES}
    return ClientForm(**values)


def form_of(client: Client) -> ClientForm:
    return ClientForm(
        client_id=client.client_id,
        client_name=client.name,
        profile=client.profile.value,
        public=checkbox_value(client.public),
        version=client.version,
        **form_values(client, FORM_FIELDS),
    )


def new_client(form: ClientForm, application_id: int, *, now: int) -> Client:
    if form.profile not in list(ClientProfile):
        raise BadClient("profile: choose native or oidc").on_screen("choose_profile")
    blank = Client(
        client_id=form.client_id.strip(),
        name="",
        profile=ClientProfile(form.profile),
        application_id=application_id,
        public=form.public == YES,
        token_settings=new_token_settings(ClientProfile(form.profile)),
        created_at=now,
    )
    return replace(apply_form(blank, form), version=blank.version)


def apply_form(client: Client, form: ClientForm) -> Client:
    """The client with what the form may change, and the version that the form was made from."""
    form = replace(form, id_token_alg=form.id_token_alg or client.token_settings.id_token_alg.value)
    values = {**typed_values(form, FORM_FIELDS), "name": form.client_name.strip()}
    changed = replace_values(client, values)
    return replace(changed, version=form.version)
