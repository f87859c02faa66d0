"""Views of lists that people saved for themselves: a search, filters and an order under a name."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from sqlalchemy import bindparam, delete, select
from sqlalchemy.dialects.postgresql import insert

from gatehouse.kernel.errors import BadInput
from gatehouse.kernel.text import is_plain_line
from gatehouse.storage.accounts.users import LOCK_USER
from gatehouse.storage.runner import SqlStore, read, write
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.saved_views import saved_views

MAX_VIEWS: Final = 20  # of one list and account
MAX_NAME_LENGTH: Final = 40  # characters
MAX_QUERY_LENGTH: Final = 1_000


class SavedView(Struct, frozen=True, kw_only=True):
    name: str
    query: str  # of the list's address


_THIS_LIST = (saved_views.c.user_id == bindparam("of"), saved_views.c.list == bindparam("of_list"))
VIEWS_OF_LIST = Statement(
    lambda: select(saved_views.c.name, saved_views.c.query).where(*_THIS_LIST).order_by(saved_views.c.created_at)
)
_UPSERT = insert(saved_views)
UPSERT_VIEW = Statement(
    lambda: _UPSERT.on_conflict_do_update(
        index_elements=["user_id", "list", "name"], set_={"query": _UPSERT.excluded.query}
    )
)
DROP_VIEW = Statement(lambda: delete(saved_views).where(*_THIS_LIST, saved_views.c.name == bindparam("named")))


def views_of(user_id: str, list_name: str) -> Verb[Sequence[SavedView]]:
    """Return the views of a list that a person saved, the oldest first."""
    return [SavedView(name=row.name, query=row.query) for row in (yield VIEWS_OF_LIST(of=user_id, of_list=list_name))]


def save_view(user_id: str, list_name: str, view: SavedView, now: int) -> Verb[None]:
    """Save a view; one of the same name is replaced. Raises BadInput when there are too many."""
    yield LOCK_USER(of=user_id)
    others = [one for one in (yield from views_of(user_id, list_name)) if one.name != view.name]
    if len(others) >= MAX_VIEWS:
        raise BadInput(f"at most {MAX_VIEWS} views of a list").on_screen("views_most", most=MAX_VIEWS)
    yield UPSERT_VIEW(user_id=user_id, list=list_name, name=view.name, query=view.query, created_at=now)


def remove_view(user_id: str, list_name: str, name: str) -> Verb[None]:
    """Remove a view; one that is gone already is no error."""
    yield DROP_VIEW(of=user_id, of_list=list_name, named=name)


class SavedViewStore(SqlStore):
    views_of = read(views_of)
    save_view = write(save_view)
    remove_view = write(remove_view)


def check_view(name: str, query: str) -> SavedView:
    """Return the view as it is stored. Raises BadInput."""
    named = name.strip()
    if not named or len(named) > MAX_NAME_LENGTH or not is_plain_line(named):
        raise BadInput(f"name: enter 1 to {MAX_NAME_LENGTH} characters").on_screen("view_name", most=MAX_NAME_LENGTH)
    if not query or len(query) > MAX_QUERY_LENGTH:
        raise BadInput("choose filters or a search first").on_screen("view_empty")
    return SavedView(name=named, query=query)
