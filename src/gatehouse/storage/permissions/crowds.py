"""Reads about many people at once (CrowdStore): candidates by index, a page at a time."""

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, Final

from sqlalchemy import BigInteger, Select, Text, bindparam, or_, select, union
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from gatehouse.permissions.errors import ApplicationNotFound
from gatehouse.permissions.model.crowd import Candidates, Crowd, Outline
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.storage.permissions.facts import facts_of_many
from gatehouse.storage.permissions.schemas import application_models
from gatehouse.storage.permissions.structures import structure
from gatehouse.storage.runner import Stored, survey
from gatehouse.storage.statements import EMPTY, AnyOf, Ask, Statement, Verb
from gatehouse.storage.tables.accounts import user_purchases, user_tags, users
from gatehouse.storage.tables.applications import application_schemas, applications
from gatehouse.storage.tables.projects import group_members
from gatehouse.storage.tables.user_records import role_assignments, scope_records, user_records


class DomainOf(FunctionElement[str]):
    """What follows the only `@` of a login key."""

    inherit_cache = True
    name = "domain_of"
    type = Text()


@compiles(DomainOf, "postgresql")
def _domain_on_postgres(element: DomainOf, compiler: SQLCompiler, **kw: Any) -> str:  # noqa: ANN401
    return f"split_part({compiler.process(element.clauses, **kw)}, '@', 2)"


@compiles(DomainOf, "sqlite")
def _domain_on_sqlite(element: DomainOf, compiler: SQLCompiler, **kw: Any) -> str:  # noqa: ANN401
    login = compiler.process(element.clauses, **kw)
    return f"substr({login}, instr({login}, '@') + 1)"


_HERE: Final = bindparam("application", type_=BigInteger())
_WAYS: Final[Mapping[str, tuple[Select[Any], ...]]] = {
    "user_ids": (select(users.c.user_id).where(AnyOf(users.c.user_id, "user_ids")),),
    "roles": (
        select(role_assignments.c.user_id).where(
            role_assignments.c.application_id == _HERE, AnyOf(role_assignments.c.role_key, "roles")
        ),
    ),
    "projects": tuple(
        select(table.c.user_id).where(AnyOf(table.c.project_id, "projects"), table.c.application_id == _HERE)
        for table in (role_assignments, scope_records)
    ),
    "entries": (
        select(user_records.c.user_id).where(
            user_records.c.application_id == _HERE,
            or_(user_records.c.private_data != EMPTY, user_records.c.public_data != EMPTY),
        ),
    ),
    "groups": (select(group_members.c.user_id).where(AnyOf(group_members.c.group_id, "groups")),),
    "domains": (
        select(users.c.user_id).where(users.c.email_verified, AnyOf(DomainOf(users.c.login_key), "domains")),
    ),
    "tags": (select(user_tags.c.user_id).where(AnyOf(user_tags.c.tag, "tags")),),
    "purchases": (select(user_purchases.c.user_id).where(AnyOf(user_purchases.c.purchase, "purchases")),),
}
_LISTS: Final = frozenset(_WAYS) - {"entries"}
_IN_APPLICATION: Final = frozenset({"roles", "projects", "entries"})
EVERYONE = Statement(
    select(users.c.user_id)
    .where(users.c.user_id > bindparam("after"))
    .order_by(users.c.user_id)
    .limit(bindparam("most"))
)


VERSIONS = Statement(
    select(
        applications.c.version,
        application_schemas.c.version.label("schema_version"),
        applications.c.removed,
        applications.c.project_id,
    )
    .join(application_schemas, application_schemas.c.application_id == applications.c.application_id)
    .where(applications.c.application_id == bindparam("of", type_=BigInteger()))
)


@cache
def _found_by(ways: frozenset[str]) -> Statement:
    """The first of all are among the first of each way, so that none of them is followed to its end."""
    firsts = [_first(one).subquery() for way in sorted(ways) for one in _WAYS[way]]
    return Statement(_first(select(union(*(select(first.c.user_id) for first in firsts)).subquery().c.user_id)))


def _first(those: Select[Any]) -> Select[Any]:
    user_id = those.selected_columns.user_id
    return those.where(user_id > bindparam("after")).distinct().order_by(user_id).limit(bindparam("most"))


def outline(
    application_id: int, project_ids: Collection[str], *, known: ApplicationModel | None = None
) -> Verb[Outline]:
    model = known
    if model is None or not (yield from is_current(model)):
        models = yield from application_models([application_id])
        if application_id not in models:
            raise ApplicationNotFound
        model = models[application_id]
    return Outline(model=model, structure=(yield from structure(project_ids, [application_id])))


def is_current(model: ApplicationModel) -> Verb[bool]:
    application = model.application
    rows = yield VERSIONS(of=application.application_id)
    now = (application.version, model.schema.version, application.removed, application.project_id)
    return [tuple(row) for row in rows] == [now]


def crowd(
    among: Candidates,
    project_ids: Collection[str],
    *,
    after: str,
    limit: int,
    known: ApplicationModel | None = None,
) -> Verb[Crowd]:
    asked = _asked(among, after, limit + 1)
    found = [] if asked is None else [row.user_id for row in (yield asked)]
    people = yield from facts_of_many(found[:limit], [among.application_id])
    named = {project_id for one in people for project_id in one.projects}
    return Crowd(
        people=people,
        outline=(yield from outline(among.application_id, named | set(project_ids), known=known)),
        last=found[:limit][-1] if found else after,
        more=len(found) > limit,
    )


def _asked(among: Candidates, after: str, most: int) -> Ask | None:
    """None when nobody can be one."""
    if among.everyone:
        return EVERYONE(after=after, most=most)
    ways = frozenset(way for way in _WAYS if getattr(among, way))
    if not ways:
        return None
    lists = {way: sorted(getattr(among, way)) for way in ways & _LISTS}
    here = {"application": among.application_id} if ways & _IN_APPLICATION else {}
    return _found_by(ways)(after=after, most=most, **lists, **here)


class CrowdStorage(Stored):
    outline = survey(outline)
    crowd = survey(crowd)
