"""Pages of lists: the request for a page, and the page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

T = TypeVar("T")

PAGE_SIZE: Final = 25
EXPORT_MOST: Final = 10_000  # rows of a CSV file
SEARCH_LONGEST: Final = 200
MAX_PAGES: Final = 400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """A page of rows that contain `search`, ignoring case; empty for all."""

    search: str = ""
    page: int = 1
    size: int = PAGE_SIZE

    @property
    def offset(self) -> int:
        return (self.page - 1) * self.size


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[T]):
    rows: Sequence[T]
    total: int
    number: int = 1
    size: int = PAGE_SIZE
    is_cut: bool = False  # there are more than `total`; they were not counted

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
