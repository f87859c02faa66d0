"""OAuth clients as forms write them."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from gatehouse.fields.derive import Member, form_rows, with_members
from gatehouse.fields.model import DescribedField, Field, Kind
from gatehouse.oauth.client_document import replace_values
from gatehouse.oauth.errors import BadClient
from gatehouse.oauth.model import (
    SCOPES,
    SINGLE_FIELDS,
    ClaimContent,
    ClaimSource,
    Client,
    ClientProfile,
    FormSection,
)
from gatehouse.web.console.forms import join_lines, split_lines
from gatehouse.web.pages.forms import CsrfForm

YES: Final = "yes"
NUMBER: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
FORM_FIELDS: Final = tuple(one for one in SINGLE_FIELDS if one.field.section is not None)
BAD_NUMBER_OR_CHOICE: Final = "Token settings: choose a listed algorithm and enter seconds as a number"
SHORT: Final = frozenset({Kind.CHOICE, Kind.NUMBER})  # controls that do not need the whole width


def _form_members() -> Iterator[Member]:
    for one in FORM_FIELDS:
        if one.kind is Kind.SCOPES:
            yield one.name, tuple[str, ...], ()
        elif one.kind is Kind.NUMBER and one.default is not None:
            yield one.name, int, one.default
        else:
            yield one.name, str, one.default.value if one.kind is Kind.CHOICE else ""


@with_members(_form_members)
class ClientForm(CsrfForm, frozen=True, kw_only=True):
    """Lists have one entry per line; browsers do not send a box that is not checked."""

    client_id: str = ""
    client_name: str = ""
    profile: str = ClientProfile.OIDC.value
    public: str = ""
    version: int = 0


FORM_ROWS: Final = {
    section.value: form_rows(
        (one for one in FORM_FIELDS if one.field.section is section), is_short=lambda one: one.kind in SHORT
    )
    for section in FormSection
}


def new_form() -> ClientForm:
    values: dict[str, Any] = {"scopes": ("openid", "email", "profile"), "require_pkce": YES}
    return ClientForm(**values)


def form_of(client: Client) -> ClientForm:
    values: dict[str, Any] = {one.name: form_value(one, one.value_of(client)) for one in FORM_FIELDS}
    return ClientForm(
        client_id=client.client_id,
        client_name=client.name,
        profile=client.profile.value,
        public=checkbox_value(client.public),
        version=client.version,
        **values,
    )


def form_value(one: DescribedField[Field], value: Any) -> Any:  # noqa: ANN401 - the type of the field
    if one.kind is Kind.NUMBER and one.default is None:
        return "" if value is None else str(value)
    return FORM_WRITERS[one.kind](value) if one.kind in FORM_WRITERS else value


def new_client(form: ClientForm, application_id: int, *, now: int) -> Client:
    if form.profile not in list(ClientProfile):
        raise BadClient("profile: choose native or oidc").on_screen("choose_profile")
    blank = Client(
        client_id=form.client_id.strip(),
        name="",
        profile=ClientProfile(form.profile),
        application_id=application_id,
        public=form.public == YES,
        created_at=now,
    )
    return replace(apply_form(blank, form), version=blank.version)


def apply_form(client: Client, form: ClientForm) -> Client:
    """The client with what the form may change, and the version that the form was made from."""
    values = {one.name: parse_value(one, getattr(form, one.name)) for one in FORM_FIELDS}
    changed = replace_values(client, {**values, "name": form.client_name.strip()})
    return replace(changed, version=form.version)


def parse_value(one: DescribedField[Field], given: Any) -> Any:  # noqa: ANN401 - as the form has it
    if one.kind is Kind.CHOICE:
        return parse_choice(one, given)
    return FORM_PARSERS[one.kind](given) if one.kind in FORM_PARSERS else given.strip()


def parse_choice(one: DescribedField[Field], given: str) -> object:
    if given not in list(one.type):
        raise BadClient(BAD_NUMBER_OR_CHOICE)
    return one.type(given)


def parse_number(given: str | int) -> int | None:
    if isinstance(given, int):
        return given
    text = given.strip()
    if text and not NUMBER.fullmatch(text):
        raise BadClient(BAD_NUMBER_OR_CHOICE)
    return int(text) if text else None


def parse_scopes(given: Sequence[str]) -> tuple[str, ...]:
    return tuple(scope for scope in SCOPES if scope in given)


def write_claims(claims: Mapping[str, ClaimSource]) -> str:
    return join_lines(f"{name}={source.application_id}:{source.told}" for name, source in claims.items())


def parse_claims(text: str) -> Mapping[str, ClaimSource]:
    """NAME=APPLICATION_ID:roles, as the command line writes them."""
    claims: dict[str, ClaimSource] = {}
    for line in split_lines(text):
        claim, _, source = line.partition("=")
        number, _, content = source.partition(":")
        if not claim or not NUMBER.fullmatch(number) or content not in list(ClaimContent):
            raise BadClient(f"claims: {line} must be NAME=APPLICATION_ID:{'|'.join(ClaimContent)}").on_screen(
                "claim_line", line=line, names="|".join(ClaimContent)
            )
        claims[claim] = ClaimSource(application_id=int(number), told=ClaimContent(content))
    return claims


def write_jwks(jwks: Mapping[str, object]) -> str:
    return msgspec.json.format(msgspec.json.encode(jwks), indent=2).decode() if jwks else ""


def parse_jwks(text: str) -> Mapping[str, object]:
    try:
        return msgspec.json.decode(text, type=dict[str, object]) if text.strip() else {}
    except msgspec.DecodeError:
        raise BadClient("jwks: enter a JWK set as JSON").on_screen("jwk_set") from None


def checkbox_value(checked: bool) -> str:  # noqa: FBT001 - a value, no option
    return YES if checked else ""


FORM_WRITERS: Final[Mapping[Kind, Callable[[Any], str]]] = {
    Kind.LIST: join_lines,
    Kind.FLAG: checkbox_value,
    Kind.CHOICE: str,
    Kind.CLAIMS: write_claims,
    Kind.JWKS: write_jwks,
}
FORM_PARSERS: Final[Mapping[Kind, Callable[[Any], object]]] = {
    Kind.LIST: lambda text: tuple(split_lines(text)),
    Kind.SCOPES: parse_scopes,
    Kind.FLAG: YES.__eq__,
    Kind.NUMBER: parse_number,
    Kind.CLAIMS: parse_claims,
    Kind.JWKS: parse_jwks,
}
