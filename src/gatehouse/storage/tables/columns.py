"""Column types that the tables share."""

from typing import Any, Final

from sqlalchemy import BigInteger, Boolean, Column, Integer, MetaData, Text

from gatehouse.storage.statements import JsonDocument

NAMING_CONVENTION: Final = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}
metadata = MetaData(naming_convention=NAMING_CONVENTION)
# PostgreSQL leaves room on each page for the next version of its rows, which are then in no index a second time. For
# tables whose rows change after they are stored, in columns without an index; of `last_seen`, which has one, the next
# version is at least on the same page. A migration sets it, in percent.
UPDATED_IN_PLACE: Final = {"fillfactor": 60}

# A row number that the database assigns; SQLite does so for INTEGER PRIMARY KEY only.
Position: Final = BigInteger().with_variant(Integer, "sqlite")


def text_column(name: str, **options: Any) -> Column[str]:  # noqa: ANN401
    return Column(name, Text, nullable=False, **options)


def time_column(name: str, **options: Any) -> Column[int]:  # noqa: ANN401
    return Column(name, BigInteger, nullable=False, **options)


def number_column(name: str, **options: Any) -> Column[int]:  # noqa: ANN401
    return Column(name, BigInteger, nullable=False, **options)


def flag_column(name: str, **options: Any) -> Column[bool]:  # noqa: ANN401
    return Column(name, Boolean, nullable=False, **options)


def document_column(name: str) -> Column[object]:
    return Column(name, JsonDocument, nullable=False)
