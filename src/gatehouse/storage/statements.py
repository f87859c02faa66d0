"""Core statements, compiled once for each dialect and run on the bare driver.

SQLAlchemy's own execution costs more than an RSA signature; its compiler runs only once per statement
(docs/decisions/0003-verbs-written-once.md).
"""

from collections import namedtuple
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from enum import Enum
from functools import cached_property, partial
from operator import itemgetter
from sys import intern
from typing import Any, ClassVar, Final, TypeAlias, TypeVar

import msgspec
from sqlalchemy import (
    BindParameter,
    ClauseElement,
    ColumnElement,
    Dialect,
    FromClause,
    Integer,
    Select,
    Text,
    UpdateBase,
    bindparam,
    cast,
    literal_column,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.postgresql.asyncpg import dialect as asyncpg_dialect
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.sql.type_api import TypeEngine
from sqlalchemy.types import Boolean, TypeDecorator

from gatehouse.storage.rows import Decoder, RecordColumns, column_names

QUERY_NUMBER: Final = "number_of_question"
LONG_DOCUMENT: Final = 2**18  # characters above which a list is decoded item by item
NO_RECORDS: Final[Mapping[str, RecordColumns[Any]]] = {}
Row: TypeAlias = Any  # a named tuple made for its statement: row.user_id
T = TypeVar("T")


class JsonDocument(TypeDecorator[object]):
    """A JSON document stored as text.

    It is text on both databases: jsonb does not keep every document unchanged, and no query searches inside one.
    """

    impl = Text
    cache_ok = True


EMPTY_DOCUMENT: Final = literal_column(
    "'{}'", Text
)  # an empty document as a literal; as a parameter it would be encoded


class InList(ColumnElement[bool]):
    """`column` is one of the values of one list parameter of any length."""

    inherit_cache = False
    type = Boolean()
    _is_implicitly_boolean = True  # otherwise SQLite gets `… IN (…) = 1`
    on_postgres: ClassVar[str]
    on_sqlite: ClassVar[str] = "{column} IN (SELECT value FROM json_each({values}))"

    def __init__(self, column: ColumnElement[Any], name: str) -> None:
        self.column = column
        self.name = name

    def write(self, form: str, compiler: SQLCompiler, **kw: Any) -> str:  # noqa: ANN401
        values = compiler.process(bindparam(self.name, type_=JsonDocument()), **kw)
        return form.format(column=compiler.process(self.column, **kw), values=values)


@compiles(InList, "postgresql")
def _list_on_postgres(element: InList, compiler: SQLCompiler, **kw: Any) -> str:  # noqa: ANN401
    return element.write(element.on_postgres, compiler, **kw)


@compiles(InList, "sqlite")
def _list_on_sqlite(element: InList, compiler: SQLCompiler, **kw: Any) -> str:  # noqa: ANN401
    return element.write(element.on_sqlite, compiler, **kw)


class InStringList(InList):
    # `IN (SELECT …)` beside another condition with OR would read the whole table.
    on_postgres = "{column} = ANY(ARRAY(SELECT json_array_elements_text(CAST({values} AS json))))"


class InNumberList(InList):
    # In a query of its own it is converted once, not for every row.
    on_postgres = "{column} = ANY(CAST((SELECT translate({values}, '[]', '{{}}')) AS bigint[]))"


class DialectFunction(FunctionElement[T]):
    """A function that each database writes in its own way; `{0}` is the list of arguments."""

    inherit_cache = True
    on_postgres: ClassVar[str]
    on_sqlite: ClassVar[str]


@compiles(DialectFunction, "postgresql")
def _function_on_postgres(element: DialectFunction[Any], compiler: SQLCompiler, **kw: Any) -> str:  # noqa: ANN401
    return element.on_postgres.format(compiler.process(element.clauses, **kw))


@compiles(DialectFunction, "sqlite")
def _function_on_sqlite(element: DialectFunction[Any], compiler: SQLCompiler, **kw: Any) -> str:  # noqa: ANN401
    return element.on_sqlite.format(compiler.process(element.clauses, **kw))


class JoinedLines(DialectFunction[str]):
    """All values of a column as one text, one per line: a list read without a second round trip."""

    inherit_cache = True
    type = Text()
    on_postgres = "string_agg({0}, chr(10))"
    on_sqlite = "group_concat({0}, char(10))"


class OrdinaryCollation(DialectFunction[str]):
    """A text that is compared like the columns of most tables, so that their indexes find it."""

    inherit_cache = True
    type = Text()
    on_postgres = '(({0}) COLLATE "default")'
    on_sqlite = "{0}"


def split_lines(joined: str | None) -> frozenset[str]:
    return frozenset(joined.split("\n")) if joined else frozenset()


class Bytewise(DialectFunction[str]):
    """A text that is compared byte by byte on both databases, so that a beginning of it is one range of an index."""

    inherit_cache = True
    type = Text()
    on_postgres = '(({0}) COLLATE "C")'
    on_sqlite = "{0}"


class RowsAsJson(DialectFunction[object]):
    """Rows of these columns as one unordered JSON document: tables read without further round trips.

    Each row is a list. Documents in it are still text; booleans are 0 and 1 on SQLite. Without rows it is None on
    PostgreSQL.
    """

    inherit_cache = True
    type = JsonDocument()
    on_postgres = "json_agg(json_build_array({0}))"
    on_sqlite = "json_group_array(json_array({0}))"


class JsonItems(DialectFunction[object]):
    """The items of a list parameter as rows, with the column `value`."""

    inherit_cache = True
    type = JsonDocument()
    on_postgres = "json_array_elements(CAST({0} AS json))"
    on_sqlite = "json_each({0})"


def json_text(value: ColumnElement[Any], place: int) -> ColumnElement[str]:
    """One text of a JSON list, written alike on both databases."""
    return cast(value.op("->>")(literal_column(str(place), Integer)), Text())


def decode_document(text: str) -> Any:  # noqa: ANN401 - whatever was written
    """Decode a document that is text inside such rows; most are empty."""
    return {} if text == "{}" else msgspec.json.decode(text)


class DatabaseKind(Enum):
    SQLITE = "sqlite"
    POSTGRES = "postgres"


class HintingCompiler(SQLiteCompiler):
    """Writes `with_hint(table, "INDEXED BY …", "sqlite")`, which SQLAlchemy leaves out."""

    def get_from_hint_text(self, table: FromClause, text: str | None) -> str | None:  # noqa: ARG002
        return text


DIALECTS: Final[Mapping[DatabaseKind, Dialect]] = {
    DatabaseKind.SQLITE: sqlite.dialect(paramstyle="qmark"),
    DatabaseKind.POSTGRES: asyncpg_dialect(),  # type: ignore[no-untyped-call]
}
DIALECTS[DatabaseKind.SQLITE].statement_compiler = HintingCompiler


class BoundStatement(msgspec.Struct, frozen=True):
    """A statement with its parameters: what a verb yields."""

    statement: "Statement"
    parameters: Mapping[str, object]


class Notification(msgspec.Struct, frozen=True):
    """Wakes listeners once the verb has committed; no decision depends on it."""

    channel: str
    payload: str


class BulkStatement(msgspec.Struct, frozen=True):
    """One statement for many rows, in one round trip; it returns no rows."""

    statement: "Statement"
    rows: Sequence[Mapping[str, object]]


VerbStep: TypeAlias = BoundStatement | BulkStatement | Notification
Verb: TypeAlias = Generator[VerbStep, list[Row], T]


class CompiledStatement(msgspec.Struct, frozen=True):
    sql: str
    parameter_order: tuple[str, ...]  # the name of the parameter at each position
    in_order: Callable[[Mapping[str, object]], Sequence[object]]  # the parameters at their positions
    parameter_count: int  # the number of parameters
    constants: Mapping[str, object]
    encoders: Mapping[str, Callable[[object], object]]
    decode: Callable[[Sequence[object]], Row]

    def driver_values(self, parameters: Mapping[str, object]) -> Sequence[object]:
        """Return the parameters as the driver expects them; a missing or unknown one is a bug and raises."""
        values = {**self.constants, **parameters} if self.constants else parameters
        if len(values) != self.parameter_count:
            raise KeyError(f"parameters {sorted(values)} do not match {sorted(set(self.parameter_order))}")
        if self.encoders:
            values = {**values, **{name: encode(values[name]) for name, encode in self.encoders.items()}}
        return self.in_order(values)


class BatchedStatement(msgspec.Struct, frozen=True, eq=False):
    """A statement that runs for several callers in one batch."""

    compiled: CompiledStatement
    number_index: int  # the position of the query number among the parameters
    decode: Callable[[Sequence[object]], Row]  # the type of a row without its query number

    def driver_values(self, parameters: Mapping[str, object]) -> list[object]:
        return list(self.compiled.driver_values({**parameters, QUERY_NUMBER: 0}))

    def split_rows(self, answers: Sequence[Sequence[object]], queries: int) -> list[list[Row]]:
        """Return the rows of each query, in order."""
        rows_by_query: list[list[Row]] = [[] for _ in range(queries)]
        for answer in answers:
            *row, number = answer
            rows_by_query[number].append(self.decode(row))  # type: ignore[call-overload]
        return rows_by_query


class Statement:
    """One SQL statement of the service, written once for both databases and built when it first runs.

    `records`: what the first columns of a row are together, so that a row has `row.user` in place of these columns.
    """

    def __init__(
        self,
        build: Callable[[], ClauseElement],
        *,
        records: Mapping[str, RecordColumns[Any]] = NO_RECORDS,
    ) -> None:
        self._build = build
        self._records = records

    @classmethod
    def for_each(cls, items: Iterable[T], build: Callable[[T], ClauseElement]) -> "tuple[Statement, ...]":
        return tuple(cls(partial(build, item)) for item in items)

    def __call__(self, **parameters: object) -> BoundStatement:
        return BoundStatement(self, parameters)

    def bulk(self, rows: Sequence[Mapping[str, object]]) -> BulkStatement:
        return BulkStatement(self, rows)

    @cached_property
    def _element(self) -> ClauseElement:
        return self._build()

    @cached_property
    def for_sqlite(self) -> CompiledStatement:
        return self.compile_for(DatabaseKind.SQLITE)

    @cached_property
    def for_postgres(self) -> CompiledStatement:
        return self.compile_for(DatabaseKind.POSTGRES)

    @cached_property
    def for_batch(self) -> "BatchedStatement | None":
        """Return the PostgreSQL statement for a batch, where each row has its query's number; None if it cannot."""
        number = cast(bindparam(QUERY_NUMBER, type_=Integer()), Integer).label(QUERY_NUMBER)
        if isinstance(self._element, Select):
            element: ClauseElement = self._element.add_columns(number)
        elif isinstance(self._element, UpdateBase) and tuple(self._element.exported_columns):
            element = self._element.returning(number)
        else:
            return None
        compiled = Statement(lambda: element).for_postgres
        return BatchedStatement(
            compiled, number_index=compiled.parameter_order.index(QUERY_NUMBER), decode=self.for_postgres.decode
        )

    def compile_for(self, target: DatabaseKind) -> CompiledStatement:
        compiled = self._element.compile(dialect=DIALECTS[target])
        assert isinstance(compiled, SQLCompiler)  # noqa: S101 - narrows the type
        # SQLAlchemy's own names are compared character by character, in every call of a statement.
        binds = {intern(str(name)): bind for bind, name in compiled.bind_names.items()}
        names = tuple(binds)
        places = tuple(intern(str(name)) for name in compiled.positiontup or ())
        # On PostgreSQL a parameter used twice is listed twice, but numbered and given once.
        order = places if target is DatabaseKind.SQLITE else tuple(dict.fromkeys(places))
        return CompiledStatement(
            sql=compiled.string,
            parameter_order=order,
            in_order=_reader_of(order),
            parameter_count=len(names),
            constants={name: binds[name].value for name in names if _is_constant(binds[name])},
            encoders={name: _encode for name in names if isinstance(binds[name].type, JsonDocument)},
            decode=self._decoder(target),
        )

    def _decoder(self, target: DatabaseKind) -> Callable[[Sequence[object]], Row]:
        columns = tuple(getattr(self._element, "exported_columns", ()))
        if not columns:
            return tuple
        decoders = [_decoder_of(column.type, target) for column in columns]
        converted: list[tuple[slice, Decoder]] = []
        first = 0
        for record in self._records.values():
            place = slice(first, first + record.width)
            converted.append((place, record.decoder(decoders[place])))
            first = place.stop
        # `Row._make` is a function in Python; this is what it calls.
        row_type = namedtuple("Row", [*self._records, *column_names(columns[first:])])  # type: ignore[misc]  # noqa: PYI024
        make: Callable[[Iterable[object]], Row] = partial(tuple.__new__, row_type)
        decoded = [(place, decode) for place, decode in enumerate(decoders) if place >= first and decode is not None]

        def decode_row(values: Sequence[object]) -> Row:
            row = list(values)
            for place, decode in decoded:
                row[place] = decode(row[place])
            if converted:
                row[:first] = [convert(tuple(values[place])) for place, convert in converted]
            return make(row)

        return decode_row if decoded or converted else make


def _reader_of(names: Sequence[str]) -> Callable[[Mapping[str, object]], Sequence[object]]:
    """Return a function that reads these members of a mapping, in order."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda parameters: tuple(parameters[name] for name in names)


def _is_constant(bind: BindParameter[Any]) -> bool:
    return not bind.required and bind.value is not None


def _encode(value: object) -> str | None:
    if isinstance(value, list) and value and isinstance(value[0], dict):  # one at a time: no single call is long
        return f"[{','.join(msgspec.json.encode(item).decode() for item in value)}]"
    return None if value is None else msgspec.json.encode(value).decode()


def _decoder_of(kind: TypeEngine[Any], target: DatabaseKind) -> Decoder | None:
    if isinstance(kind, JsonDocument):
        return _decode
    if isinstance(kind, Boolean) and target is DatabaseKind.SQLITE:
        return bool
    return None


def _decode(text: str | None) -> object:
    if text is not None and len(text) > LONG_DOCUMENT and text.startswith("["):
        return [msgspec.json.decode(item) for item in msgspec.json.decode(text, type=list[msgspec.Raw])]
    return None if text is None else msgspec.json.decode(text)
