"""Secret fields are in no repr, log line or traceback of the records that hold them."""

import traceback
from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages
from typing import Annotated, Final

import pytest
from msgspec import Struct, field

import gatehouse
from gatehouse import logs
from gatehouse.fields.secrets import HIDDEN, SecretBytes, SecretRecord, SecretText, hidden_fields

PASSWORD: Final = "correct horse battery staple"
# Names that always mean a secret, where the type is a text or bytes.
SECRET_NAMES: Final = frozenset(
    {"password", "password_hash", "otp", "jwt", "service_jwt", "client_secret", "totp_secret"}
)
OTHERS: Final = ("gatehouse.client.", "gatehouse.settings.")  # a library without the server; `settings.secret.Secret`


def all_records(base: type[Struct] = Struct) -> Iterator[type[Struct]]:
    for module in walk_packages(gatehouse.__path__, "gatehouse."):
        if not module.name.startswith("gatehouse.storage.migrations") and not module.name.endswith("__main__"):
            import_module(module.name)
    found = list(base.__subclasses__())
    while found:
        record = found.pop()
        found += record.__subclasses__()
        if record.__module__.startswith("gatehouse."):
            yield record


RECORDS: Final = sorted(
    {one for one in all_records() if issubclass(one, SecretRecord)}, key=lambda one: one.__qualname__
)
HOLDERS: Final = [record for record in RECORDS if hidden_fields(record)]


class Sample(SecretRecord, frozen=True, kw_only=True):
    name: str
    password: SecretText
    key: SecretBytes | None = None
    codes: tuple[SecretText, ...] = ()
    claims: Annotated[dict[str, str], HIDDEN] = field(default_factory=dict)


def filled(record: type[Struct]) -> Struct:
    hidden = hidden_fields(record)
    return record(**{name: PASSWORD if name in hidden else f"a {name}" for name in record.__struct_fields__})


def traceback_with_locals(record: Struct) -> str:
    try:
        raise ValueError(f"cannot use {record}")  # noqa: TRY301 - with the record as a local
    except ValueError as error:
        return "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())


def test_secret_types_are_hidden_alone_optional_in_tuples_and_as_any_type() -> None:
    sample = Sample(name="a name", password="p", key=b"k", codes=("c",), claims={"email": "e"})
    assert hidden_fields(Sample) == {"password", "key", "codes", "claims"}
    assert repr(sample) == "Sample(name='a name')"


def test_there_are_records_with_secrets() -> None:
    assert len(HOLDERS) > 50


@pytest.mark.parametrize("record", HOLDERS, ids=lambda one: one.__qualname__)
def test_no_secret_is_in_repr_logs_or_tracebacks(record: type[Struct]) -> None:
    sample = filled(record)
    shown = [repr(sample), str(sample), f"{sample}", f"{[sample]}", f"{sample!r:>10}", str({"record": sample})]
    shown.append(traceback_with_locals(sample))
    shown.append(str(logs.redact(None, "info", {"event": "failed", "detail": sample})))
    shown.append(str(sample.__rich_repr__()))
    assert not [text for text in shown if PASSWORD in text]


def test_fields_that_are_named_like_a_secret_are_hidden() -> None:
    shown = [
        f"{record.__module__}.{record.__qualname__}.{name}"
        for record in all_records()
        if not record.__module__.startswith(OTHERS)
        for name in SECRET_NAMES & set(record.__annotations__)
        if holds_text(record.__annotations__[name]) and name not in hidden_fields(record)
    ]
    assert shown == []


def holds_text(annotation: object) -> bool:
    return "str" in str(annotation) or "bytes" in str(annotation)
