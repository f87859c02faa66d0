"""Forms of records, from the descriptions of their fields: their members, what they show, and what was typed."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from gatehouse.fields.derive import Member
from gatehouse.fields.model import DescribedField, FieldT, Kind
from gatehouse.kernel.errors import BadInput
from gatehouse.oauth.errors import BadClient
from gatehouse.oauth.model import ALLOWED_SCOPES, ClaimContent, ClaimSource
from gatehouse.web.console.forms import form_text, join_lines, split_lines

YES: Final = "yes"  # of a box that is checked; browsers do not send others
ERROR_BYTE: Final = re.compile(r"\(byte ([0-9]+)\)", re.ASCII)
UNKNOWN_MEMBER: Final = re.compile("Object contains unknown field `([^`]*)`")
MISSING_MEMBER: Final = re.compile("Object missing required field `([^`]*)`")
NUMBER: Final = re.compile(r"[0-9]{1,18}", re.ASCII)


def form_members(described: Iterable[DescribedField[FieldT]]) -> Iterator[Member]:
    """Yield the members of a form; lists have one entry per line."""
    for one in described:
        if one.kind is Kind.SCOPES:
            yield one.name, tuple[str, ...], ()
        elif one.kind is Kind.NUMBER and one.default:
            yield one.name, int, one.default
        else:
            yield one.name, str, one.default.value if one.kind is Kind.CHOICE else ""


def form_values(record: object, described: Iterable[DescribedField[FieldT]]) -> dict[str, Any]:
    """Return what the form of the record shows, by name."""
    return {one.name: _form_value(one, one.value_of(record)) for one in described}


def typed_values(form: object, described: Iterable[DescribedField[FieldT]]) -> dict[str, Any]:
    """Return what was typed as the record has it, by name. Raises BadInput, which names the field."""
    return {one.name: _typed_value(one, getattr(form, one.name)) for one in described}


def _form_value(one: DescribedField[FieldT], value: Any) -> Any:  # noqa: ANN401 - the type of the field
    if one.kind is Kind.NUMBER:
        return value if one.default else _number_text(one, value)
    return WRITERS.get(one.kind, _text)(value)


def _number_text(one: DescribedField[FieldT], value: int | None) -> str:
    """A number that may be left empty."""
    return "" if value == one.default else str(value)


def _typed_value(one: DescribedField[FieldT], typed: Any) -> Any:  # noqa: ANN401 - as the form has it
    match one.kind:
        case Kind.CHOICE:
            names = [member.value for member in one.type]
            if typed not in names:
                raise BadInput(f"{one.name}: must be one of {', '.join(names)}").on_screen("one_of", names=names)
            return one.type(typed)
        case Kind.NUMBER if isinstance(typed, str):
            return _parse_number(one, typed.strip())
        case Kind.NUMBER:
            return typed
        case Kind.DOCUMENT:
            return parse_document(one, typed)
        case _:
            return PARSERS[one.kind](typed)


def _parse_number(one: DescribedField[FieldT], text: str) -> int | None:
    if not text:
        default: int | None = one.default
        return default
    if not NUMBER.fullmatch(text):
        error = BadInput(f"{one.name}: enter a number, or leave it empty")
        raise error.on_screen("number_or_default") if one.default is None else error.on_screen("number_or_none")
    return int(text)


def checkbox_value(checked: bool) -> str:  # noqa: FBT001 - a value, no option
    return YES if checked else ""


def parse_scopes(given: Sequence[str]) -> tuple[str, ...]:
    return tuple(scope for scope in ALLOWED_SCOPES if scope in given)


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


def write_document(document: object) -> str:
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() if document else ""


def parse_document(one: DescribedField[FieldT], text: str) -> object:
    try:
        return msgspec.json.decode(text, type=one.type) if text.strip() else one.default
    except msgspec.ValidationError as error:
        raise misfit_document(one.name, str(error)) from None
    except (msgspec.DecodeError, UnicodeError) as error:
        number = line_of_error(text, str(error))
        raise BadInput(f"{one.name}: line {number}: not JSON").on_screen("document_line", number=number) from None


def misfit_document(name: str, error: str) -> BadInput:
    """Return the problem of JSON that is not as it must be, with the member but without what it contains."""
    text, _, path = error.partition(" - at `$")
    problem = BadInput(f"{name}{path.removesuffix('`')}: {text}")
    if unknown := UNKNOWN_MEMBER.match(text):
        return problem.on_screen("document_unknown", name=unknown[1])
    if missing := MISSING_MEMBER.match(text):
        return problem.on_screen("document_missing", name=missing[1])
    return problem.on_screen("document_member")


def line_of_error(text: str, error: str) -> int:
    """Return the line that an error of the JSON is in; the last one where the text ends too early."""
    found = ERROR_BYTE.search(error)
    before = text.encode()[: int(found[1])] if found else text.strip().encode()
    return before.count(b"\n") + 1


def _text(value: str | None) -> str:
    return value or ""


WRITERS: Final[Mapping[Kind, Callable[[Any], Any]]] = {
    Kind.LIST: join_lines,
    Kind.LABELS: lambda labels: join_lines(sorted(labels)),
    Kind.FLAG: checkbox_value,
    Kind.CHOICE: str,
    Kind.SCOPES: tuple,
    Kind.CLAIMS: write_claims,
    Kind.DOCUMENT: write_document,
}
PARSERS: Final[Mapping[Kind, Callable[[Any], Any]]] = {
    Kind.LIST: lambda text: tuple(split_lines(text)),
    Kind.LABELS: lambda text: frozenset(split_lines(text)),
    Kind.FLAG: YES.__eq__,
    Kind.TEXT: str.strip,
    Kind.EMAIL: str.strip,
    Kind.URL: str.strip,
    Kind.PARAGRAPHS: form_text,
    Kind.SCOPES: parse_scopes,
    Kind.CLAIMS: parse_claims,
}
