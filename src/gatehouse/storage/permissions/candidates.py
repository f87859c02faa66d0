"""Reads about many people at once (CandidateStore): candidates by index, a page at a time."""

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, Final

from sqlalchemy import BigInteger, Select, bindparam, or_, select, union

from gatehouse.permissions.errors import ApplicationNotFound
from gatehouse.permissions.model.candidates import ApplicationSnapshot, CandidateFilter, CandidatePage
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.storage.permissions.facts import facts_of_many
from gatehouse.storage.permissions.grant_keys import DomainOf
from gatehouse.storage.permissions.project_models import read_structure
from gatehouse.storage.permissions.schemas import application_models
from gatehouse.storage.runner import SqlStore, snapshot_read
from gatehouse.storage.statements import (
    EMPTY_DOCUMENT,
    BoundStatement,
    InStringList,
    Statement,
    Verb,
)
from gatehouse.storage.tables.accounts import user_purchases, user_tags, users
from gatehouse.storage.tables.permissions import (
    application_schemas,
    applications,
    role_assignments,
    scope_records,
    user_records,
)
from gatehouse.storage.tables.projects import group_members

_THIS_APPLICATION: Final = bindparam("application", type_=BigInteger())
CANDIDATE_QUERIES: Final[Mapping[str, tuple[Select[Any], ...]]] = {
    "user_ids": (select(users.c.user_id).where(InStringList(users.c.user_id, "user_ids")),),
    "roles": (
        select(role_assignments.c.user_id).where(
            role_assignments.c.application_id == _THIS_APPLICATION, InStringList(role_assignments.c.role_key, "roles")
        ),
    ),
    "projects": tuple(
        select(table.c.user_id).where(
            InStringList(table.c.project_id, "projects"), table.c.application_id == _THIS_APPLICATION
        )
        for table in (role_assignments, scope_records)
    ),
    "entries": (
        select(user_records.c.user_id).where(
            user_records.c.application_id == _THIS_APPLICATION,
            or_(user_records.c.private_data != EMPTY_DOCUMENT, user_records.c.public_data != EMPTY_DOCUMENT),
        ),
    ),
    "groups": (select(group_members.c.user_id).where(InStringList(group_members.c.group_id, "groups")),),
    "domains": (
        select(users.c.user_id).where(users.c.email_verified, InStringList(DomainOf(users.c.login_key), "domains")),
    ),
    "tags": (select(user_tags.c.user_id).where(InStringList(user_tags.c.tag, "tags")),),
    "purchases": (select(user_purchases.c.user_id).where(InStringList(user_purchases.c.purchase, "purchases")),),
}
_LIST_CRITERIA: Final = frozenset(CANDIDATE_QUERIES) - {"entries"}
_APPLICATION_CRITERIA: Final = frozenset({"roles", "projects", "entries"})
EVERY_USER = Statement(
    lambda: (
        select(users.c.user_id)
        .where(users.c.user_id > bindparam("after"))
        .order_by(users.c.user_id)
        .limit(bindparam("most"))
    )
)


MODEL_VERSIONS = Statement(
    lambda: (
        select(
            applications.c.version,
            application_schemas.c.version.label("schema_version"),
            applications.c.removed,
            applications.c.project_id,
        )
        .join(application_schemas, application_schemas.c.application_id == applications.c.application_id)
        .where(applications.c.application_id == bindparam("of", type_=BigInteger()))
    )
)


@cache
def candidates_statement(criteria: frozenset[str]) -> Statement:
    """Select a page of candidates.

    The first page of the union is within the first pages of its parts, so no part is read to its end.
    """
    firsts = [_first_page(query).subquery() for way in sorted(criteria) for query in CANDIDATE_QUERIES[way]]
    return Statement(
        lambda: _first_page(select(union(*(select(first.c.user_id) for first in firsts)).subquery().c.user_id))
    )


def _first_page(those: Select[Any]) -> Select[Any]:
    user_id = those.selected_columns.user_id
    return those.where(user_id > bindparam("after")).distinct().order_by(user_id).limit(bindparam("most"))


def application_snapshot(
    application_id: int, project_ids: Collection[str], *, known: ApplicationModel | None = None
) -> Verb[ApplicationSnapshot]:
    model = known
    if model is None or not (yield from is_current_model(model)):
        models = yield from application_models([application_id])
        if application_id not in models:
            raise ApplicationNotFound
        model = models[application_id]
    return ApplicationSnapshot(model=model, structure=(yield from read_structure(project_ids, [application_id])))


def is_current_model(model: ApplicationModel) -> Verb[bool]:
    application = model.application
    rows = yield MODEL_VERSIONS(of=application.application_id)
    now = (application.version, model.schema.version, application.removed, application.project_id)
    return [tuple(row) for row in rows] == [now]


def candidate_page(
    among: CandidateFilter,
    project_ids: Collection[str],
    *,
    after: str,
    limit: int,
    known: ApplicationModel | None = None,
) -> Verb[CandidatePage]:
    asked = _page_query(among, after, limit + 1)
    user_ids = [] if asked is None else [row.user_id for row in (yield asked)]
    people = yield from facts_of_many(user_ids[:limit], [among.application_id])
    named = {project_id for person in people for project_id in person.projects}
    return CandidatePage(
        people=people,
        snapshot=(yield from application_snapshot(among.application_id, named | set(project_ids), known=known)),
        last=user_ids[:limit][-1] if user_ids else after,
        more=len(user_ids) > limit,
    )


def _page_query(among: CandidateFilter, after: str, most: int) -> BoundStatement | None:
    """None when there can be no candidates."""
    if among.everyone:
        return EVERY_USER(after=after, most=most)
    ways = frozenset(way for way in CANDIDATE_QUERIES if getattr(among, way))
    if not ways:
        return None
    lists = {way: sorted(getattr(among, way)) for way in ways & _LIST_CRITERIA}
    here = {"application": among.application_id} if ways & _APPLICATION_CRITERIA else {}
    return candidates_statement(ways)(after=after, most=most, **lists, **here)


class CandidateStorage(SqlStore):
    application_snapshot = snapshot_read(application_snapshot)
    candidate_page = snapshot_read(candidate_page)
