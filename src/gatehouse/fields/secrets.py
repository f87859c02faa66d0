"""Secret fields: the types of values that a record holds and no repr of it shows."""

from functools import cache
from typing import Annotated, Any, Final, TypeAlias, get_args, get_origin, get_type_hints

from msgspec import Struct


class Hidden:
    """The mark of a type whose values are not shown."""


HIDDEN: Final = Hidden()
SecretText: TypeAlias = Annotated[str, HIDDEN]
SecretBytes: TypeAlias = Annotated[bytes, HIDDEN]


class SecretRecord(Struct, frozen=True):
    """A record with secret fields: its repr leaves them out, so logs and tracebacks do too."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({shown})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Tracebacks of the development mode print records by this."""
        hidden = hidden_fields(type(self))
        return [(name, getattr(self, name)) for name in self.__struct_fields__ if name not in hidden]


@cache
def hidden_fields(record: type[Struct]) -> frozenset[str]:
    """Return the names of the fields whose type is secret."""
    hints = get_type_hints(record, include_extras=True)
    return frozenset(name for name in record.__struct_fields__ if _is_hidden(hints[name]))


def _is_hidden(annotation: Any) -> bool:  # noqa: ANN401 - any annotation
    """Whether the type is secret, or one that it is made of: `SecretText | None`, `tuple[SecretBytes, ...]`."""
    if get_origin(annotation) is Annotated and any(isinstance(note, Hidden) for note in annotation.__metadata__):
        return True
    return any(map(_is_hidden, get_args(annotation)))
