"""Describe the fields of a record beside their types."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from enum import Enum, auto
from functools import cached_property
from types import UnionType
from typing import Annotated, Any, Final, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT

from gatehouse.kernel.text import is_plain_line
from gatehouse.kernel.times import iso8601


class Kind(Enum):
    """What a field contains: decides its command line option and its form control."""

    TEXT = auto()
    PARAGRAPHS = auto()  # text with line breaks
    EMAIL = auto()
    URL = auto()
    LIST = auto()
    LABELS = auto()  # a set of short texts
    SCOPES = auto()
    FLAG = auto()
    CHOICE = auto()  # a member of an enumeration or of a Literal
    NUMBER = auto()
    TIME = auto()  # seconds since 1970; ISO 8601 in entries
    SECRET = auto()
    IMAGE = auto()
    CLAIMS = auto()
    DOCUMENT = auto()  # an object or a list, written as JSON
    GROUP = auto()  # a group of fields, one level below


KIND_OF_TYPE: Final[Mapping[object, Kind]] = {
    bool: Kind.FLAG,
    int: Kind.NUMBER,
    frozenset: Kind.LABELS,
    Mapping: Kind.DOCUMENT,
}


@dataclass(frozen=True, slots=True)
class Field:
    """The description of one field."""

    help: str = ""  # one sentence: of its option, and of the reference pages
    _: KW_ONLY
    kind: Kind | None = None  # None: follows from the type
    unit: str = ""
    minimum: int = 0  # of a number, or of the length of a secret
    maximum: int | None = None  # of a number, or of the length of a text
    check: Callable[[Any], object] | None = None  # returns the stored form; raises ValueError or BadInput
    document: Callable[[Any], Any] | None = None  # returns the value in entries, with its type; None: the stored one
    choices: tuple[str, ...] = ()  # where they are not the type's
    entry_name: str = ""  # in entries and requests, if it is not the name
    option: str = ""  # if it is not the name with dashes
    section: str | None = None  # of the form; None: it is shown in a place of its own, or not at all
    hint: bool = True  # whether the form has a hint: `field.<name>_hint`
    is_short: bool = False  # shares a row of the form with another one; choices and numbers always do
    patchable: bool = True
    administrators_only: bool = False


FIXED: Final = Field(patchable=False)
CREATED: Final = Field(kind=Kind.TIME, entry_name="created", patchable=False)

FieldT = TypeVar("FieldT", bound=Field)


class DescribedField(msgspec.Struct, Generic[FieldT], frozen=True, kw_only=True, dict=True):
    """A described field, found on a record or inside one of its groups."""

    name: str
    type: Any
    default: Any  # NODEFAULT for a required field
    field: FieldT
    group: str = ""

    @property
    def path(self) -> str:
        """The path of the field in documents and error messages."""
        return f"{self.group}.{self.name}" if self.group else self.name

    @property
    def entry_name(self) -> str:
        return self.field.entry_name or self.name

    @cached_property
    def kind(self) -> Kind:
        return self.field.kind or kind_of_type(self.type)

    @property
    def is_short(self) -> bool:
        return self.field.is_short or self.kind in {Kind.CHOICE, Kind.NUMBER}

    @property
    def is_required(self) -> bool:
        return self.default is NODEFAULT

    @cached_property
    def entry_type(self) -> Any:  # noqa: ANN401 - any annotation
        """The type of the value in entries."""
        if self.field.document is not None:
            return get_type_hints(self.field.document)["return"]
        return str if self.kind is Kind.TIME else self.type

    def value_of(self, record: object) -> Any:  # noqa: ANN401 - the type of the field
        return getattr(getattr(record, self.group) if self.group else record, self.name)

    def entry_value(self, record: object) -> Any:  # noqa: ANN401 - the type in entries
        value = self.value_of(record)
        if self.field.document is not None:
            return self.field.document(value)
        return iso8601(value) if self.kind is Kind.TIME else value

    def limit_problem(self, value: Any) -> str:  # noqa: ANN401 - the type of the field
        """Return the error of a value that exceeds the limits of the field; "" for none."""
        low, high = self.field.minimum, self.field.maximum
        if high is None:
            return ""
        if self.kind is Kind.NUMBER:
            return "" if value is None or low <= value <= high else f"{self.name} must be {low} to {high}"
        low = int(self.is_required)
        fits = low <= len(value.strip()) and len(value) <= high and is_plain_line(value)
        return "" if fits else f"{self.name} must be {low} to {high} visible characters"


def kind_of_type(annotation: Any) -> Kind:  # noqa: ANN401 - any annotation
    """Return the kind of a field that does not name one."""
    origin = get_origin(annotation) or annotation
    if origin is UnionType:  # a value or None
        return kind_of_type(get_args(annotation)[0])
    if origin is Literal or (isinstance(origin, type) and issubclass(origin, Enum)):
        return Kind.CHOICE
    return Kind.LIST if origin is tuple else KIND_OF_TYPE.get(origin, Kind.TEXT)


def described_fields(
    record: type[msgspec.Struct], description: type[FieldT], *, group: str = ""
) -> Iterator[DescribedField[FieldT]]:
    """Yield the fields of a record that have a description of this class, in order."""
    defaults = _defaults(record)
    for name, hint in get_type_hints(record, include_extras=True).items():
        kind, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        for field in notes:
            if isinstance(field, description):
                yield DescribedField(name=name, type=kind, default=defaults[name], field=field, group=group)


def _defaults(record: type[msgspec.Struct]) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for field in msgspec.structs.fields(record):
        found[field.name] = field.default if field.default_factory is NODEFAULT else field.default_factory()
    return found
