"""What a combobox chooses from, and why what was typed into one chose nothing."""

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from gatehouse.accounts.model import search_key
from gatehouse.kernel.errors import BadInput


class ComboboxKind(StrEnum):
    """What a combobox chooses; the texts are `combobox.missing_<value>` and `combobox.several_<value>`."""

    PERSON = "person"
    APPLICATION = "application"
    PROJECT = "project"
    GROUP = "group"
    ROLE = "role"
    APPLICATION_ROLE = "application_role"  # `<application id>/<role>`
    PERMISSION = "permission"
    RESOURCE = "resource"  # an application, service or group, by the field `kind` of the form


class ComboboxOption(Struct, frozen=True, kw_only=True):
    """`value` is what the form needs: an ID, or the name of a role or permission."""

    kind: ComboboxKind
    value: str
    label: str
    detail: str = ""
    names: tuple[str, ...] = ()  # other texts that mean exactly this

    @property
    def shown_id(self) -> str:
        return "" if self.value == self.label else self.value

    def is_named(self, text: str) -> bool:
        typed = search_key(text)
        return any(search_key(name) == typed for name in (self.value, self.label, *self.names))


class LookupFailed(BadInput):
    """No single thing is called that; the page says so at the field, with what may have been meant."""

    public = "Nothing has this name or ID."

    def __init__(
        self, kind: ComboboxKind, field: str, text: str, candidates: Sequence[ComboboxOption], *, is_ambiguous: bool
    ) -> None:
        super().__init__(f"{field}: no single {kind} for the text")
        self.kind = kind
        self.field = field
        self.text = text
        self.candidates = candidates
        self.is_ambiguous = is_ambiguous
