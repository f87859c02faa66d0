"""How the API, files, the command line and the console read the fields of an OAuth client.

`Client` in oauth/model.py describes each field once, with a `Setting`; everything else is derived from that.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, MISSING, dataclass, fields
from enum import Enum, StrEnum, auto
from typing import Annotated, Any, TypeVar, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT

from gatehouse.kernel.text import is_plain_line

StructT = TypeVar("StructT", bound=msgspec.Struct)


class Kind(Enum):
    """What a field contains: decides its command line option and its form control."""

    TEXT = auto()
    URL = auto()
    LIST = auto()
    SCOPES = auto()
    FLAG = auto()
    CHOICE = auto()  # a member of an enumeration
    NUMBER = auto()
    CLAIMS = auto()
    JWKS = auto()
    GROUP = auto()  # a group of settings, one level below


class FormSection(StrEnum):
    """The parts of the console's form that list their fields by description."""

    MAIN = "main"
    LINKS = "links"
    SIGN_OUT = "sign_out"
    TOKENS = "tokens"
    ADMINISTRATORS = "administrators"


@dataclass(frozen=True, slots=True)
class Setting:
    """The description of one field, written beside its type and its default."""

    kind: Kind
    help: str = ""  # of its command line option
    _: KW_ONLY
    option: str = ""  # if it is not the name with dashes
    section: FormSection | None = None  # None: the form shows it in a place of its own, or not at all
    hint: bool = True  # whether the form has a hint: `field.<name>_hint`
    administrators_only: bool = False
    patchable: bool = True
    minimum: int = 0
    maximum: int | None = None  # of a number, or of the length of a text


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientField:
    """A described field, found on a client or inside one of its groups."""

    name: str
    type: Any
    default: Any  # NODEFAULT for a required field
    setting: Setting
    group: str = ""

    @property
    def kind(self) -> Kind:
        return self.setting.kind

    @property
    def path(self) -> str:
        """The path of the field in documents and error messages."""
        return f"{self.group}.{self.name}" if self.group else self.name

    @property
    def is_required(self) -> bool:
        return self.default is NODEFAULT

    def value_of(self, client: object) -> Any:  # noqa: ANN401 - the type of the field
        return getattr(getattr(client, self.group) if self.group else client, self.name)

    def limit_problem(self, value: Any) -> str:  # noqa: ANN401 - the type of the field
        """Return the error of a value that exceeds the limits of the field; "" for none."""
        low, high = self.setting.minimum, self.setting.maximum
        if high is None:
            return ""
        if self.kind is Kind.NUMBER:
            return "" if value is None or low <= value <= high else f"{self.name} must be {low} to {high}"
        low = int(self.is_required)
        fits = low <= len(value.strip()) and len(value) <= high and is_plain_line(value)
        return "" if fits else f"{self.name} must be {low} to {high} visible characters"


def described_fields(record: type[Any], group: str = "") -> Iterator[ClientField]:
    """Yield the fields of a dataclass or Struct that have a `Setting`, in order."""
    defaults = _struct_defaults(record) if issubclass(record, msgspec.Struct) else _dataclass_defaults(record)
    for name, hint in get_type_hints(record, include_extras=True).items():
        kind, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        for setting in notes:
            if isinstance(setting, Setting):
                yield ClientField(name=name, type=kind, default=defaults[name], setting=setting, group=group)


def _struct_defaults(record: type[msgspec.Struct]) -> Mapping[str, Any]:
    return {field.name: field.default for field in msgspec.structs.fields(record)}


def _dataclass_defaults(record: type[Any]) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for field in fields(record):
        made = NODEFAULT if field.default_factory is MISSING else field.default_factory()
        found[field.name] = made if field.default is MISSING else field.default
    return found


Member = tuple[str, Any, Any]  # name, type and default of a member of a Struct


def with_members(members: Callable[[], Iterator[Member]]) -> Callable[[type[StructT]], type[StructT]]:
    """Add the described fields to a Struct; it declares only the fields that code reads by name."""

    def extend(struct: type[StructT]) -> type[StructT]:
        config = struct.__struct_config__
        extended = msgspec.defstruct(
            struct.__name__,
            [member for member in members() if member[0] not in struct.__struct_fields__],
            bases=(struct,),
            module=struct.__module__,
            namespace={"__doc__": struct.__doc__},
            frozen=True,
            kw_only=True,
            forbid_unknown_fields=config.forbid_unknown_fields,
            omit_defaults=config.omit_defaults,
        )
        return cast("type[StructT]", extended)

    return extend
