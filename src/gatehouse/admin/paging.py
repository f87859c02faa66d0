"""Pages of lists: the request for a page, and the page."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct
from sqlalchemy import BigInteger, ColumnElement, Select, Text, and_, bindparam, func, or_

from gatehouse.storage.statements import Bytewise, Row, Statement, Verb

T = TypeVar("T")

PAGE_SIZE: Final = 25
EXPORT_MOST: Final = 10_000  # rows of a CSV file
SEARCH_LONGEST: Final = 200
MAX_PAGES: Final = 400_000


class PageRequest(Struct, frozen=True, kw_only=True):
    """A page of rows that contain `search`, ignoring case; empty for all."""

    search: str = ""
    page: int = 1
    size: int = PAGE_SIZE

    @property
    def offset(self) -> int:
        return (self.page - 1) * self.size


class Page(Struct, Generic[T], frozen=True, kw_only=True):
    rows: Sequence[T]
    total: int
    number: int = 1
    size: int = PAGE_SIZE
    is_cut: bool = False  # there are more than `total`; they were not counted
    searched: int = 0  # only so many, the newest, were searched; 0 for all

    @property
    def last(self) -> int:
        return max(1, -(-self.total // self.size))

    @property
    def first_row(self) -> int:
        return min(self.total, (self.number - 1) * self.size + 1)

    @property
    def last_row(self) -> int:
        return min(self.total, self.number * self.size)


def page_request(search: str, page: int, *, size: int = PAGE_SIZE) -> PageRequest:
    """A valid page request from any values of a URL."""
    return PageRequest(search=search.strip()[:SEARCH_LONGEST], page=min(max(1, page), MAX_PAGES), size=size)


ESCAPE: Final = "\\"
SEARCH: Final = bindparam("search", type_=Text())
OFFSET: Final = bindparam("offset", type_=BigInteger())
SIZE: Final = bindparam("size", type_=BigInteger())


def contains_pattern(search: str) -> str:
    """The LIKE pattern for values that contain the text, with its wildcards escaped."""
    for mark in (ESCAPE, "%", "_"):
        search = search.replace(mark, ESCAPE + mark)
    return f"%{search.lower()}%"


def contains_search(*columns: ColumnElement[str]) -> ColumnElement[bool]:
    return or_(*(func.lower(column).like(SEARCH, escape=ESCAPE) for column in columns))


LAST_CHARACTER: Final = "\U0010ffff"  # the greatest character


def has_prefix(column: ColumnElement[str], name: str) -> ColumnElement[bool]:
    """A range of an index on Bytewise(column); its ends are the parameters `<name>_from` and `<name>_to`."""
    text = Bytewise(column)
    return and_(text >= bindparam(f"{name}_from", type_=Text()), text < bindparam(f"{name}_to", type_=Text()))


def prefix_parameters(name: str, search: str) -> dict[str, object]:
    return {f"{name}_from": search, f"{name}_to": f"{search}{LAST_CHARACTER}"}


class PagedList:
    """One list: a page of its rows, and their total. `searched`: its statements have a search."""

    def __init__(self, rows: Select[Any], *, counted: Select[Any], searched: bool = True) -> None:
        self._rows = Statement(lambda: rows.limit(SIZE).offset(OFFSET))
        self._count = Statement(lambda: counted)
        self._searched = searched

    def read_page(
        self,
        page_request: PageRequest,
        make_line: Callable[[Row], T],
        *,
        row_params: Mapping[str, object] = MappingProxyType({}),
        **params: object,
    ) -> Verb[Page[T]]:
        """Return a page; `row_params` are parameters of the selected columns, which the count does not have."""
        params |= {"search": contains_pattern(page_request.search)} if self._searched else {}
        (counted,) = yield self._count(**params)
        rows = yield self._rows(**params, **row_params, offset=page_request.offset, size=page_request.size)
        return Page(
            rows=[make_line(row) for row in rows],
            total=counted.total,
            number=page_request.page,
            size=page_request.size,
        )
