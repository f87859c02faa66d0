"""Read facts, models and candidates for decisions (PermissionStore, CandidateStore)."""

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any, Final

from sqlalchemy import BigInteger, ColumnElement, Select, Text, bindparam, exists, func, or_, select, union

from gatehouse.accounts.bans.model import DigestKind
from gatehouse.accounts.model import User
from gatehouse.permissions.errors import ApplicationNotFound
from gatehouse.permissions.model.condition import ConditionSubject
from gatehouse.permissions.model.facts import (
    ApplicationModel,
    ApplicationSnapshot,
    ApplicationState,
    CandidateFilter,
    CandidatePage,
    Facts,
)
from gatehouse.permissions.model.project import ServiceAccount
from gatehouse.storage.keys import KEYS_VERSION
from gatehouse.storage.permissions import structure
from gatehouse.storage.permissions.applications import (
    add_email_secret,
    all_email_secrets,
    has_email_secret,
    install_central,
    login_section,
    remove_email_secret,
    root_roles,
)
from gatehouse.storage.permissions.record_checks import IS_OWNER
from gatehouse.storage.permissions.row_readers import (
    Cells,
    bans_from_document,
    columns,
    end_of,
    holdings_of,
    records_from_row,
)
from gatehouse.storage.permissions.schemas import application_models
from gatehouse.storage.permissions.service_accounts import ACCOUNT_COLUMNS, account_from_cells
from gatehouse.storage.permissions.structure import read_structure
from gatehouse.storage.runner import SqlStore, cached_read, read, snapshot_read, write
from gatehouse.storage.statements import (
    EMPTY_DOCUMENT,
    BoundStatement,
    DialectFunction,
    InNumberList,
    InStringList,
    JoinedLines,
    Row,
    RowsAsJson,
    Statement,
    Verb,
    split_lines,
)
from gatehouse.storage.tables.accounts import ban_digests, passkeys, totp_factors, user_purchases, user_tags, users
from gatehouse.storage.tables.permissions import (
    application_schemas,
    applications,
    group_members,
    role_assignments,
    scope_records,
    service_accounts,
    user_records,
)

_PERSON: Final = columns(
    users,
    *("user_id", "login", "login_key", "email_verified", "phone_verified", "email_code", "blocked", "rev", "bans"),
)
_APPLICATIONS = (
    select(
        RowsAsJson(
            *columns(applications, "application_id", "project_id", "removed", "version"),
            application_schemas.c.version,
        )
    )
    .join(application_schemas, application_schemas.c.application_id == applications.c.application_id)
    .where(InNumberList(applications.c.application_id, "applications"))
)


def _select_facts(user_id: ColumnElement[str]) -> Select[Any]:
    """Select all facts in one statement, so that they are consistent with the versions in the same row."""
    owned = columns(role_assignments, "project_id", "expired", "ttl")
    asked: Mapping[str, Select[Any]] = {
        "passkeys": select(func.count()).where(passkeys.c.user_id == user_id),
        "tags": select(JoinedLines(user_tags.c.tag)).where(user_tags.c.user_id == user_id),
        "purchases": select(JoinedLines(user_purchases.c.purchase)).where(user_purchases.c.user_id == user_id),
        "groups": select(JoinedLines(group_members.c.group_id)).where(group_members.c.user_id == user_id),
        "owns": select(RowsAsJson(*owned)).where(role_assignments.c.user_id == user_id, IS_OWNER),
        "account": select(RowsAsJson(*ACCOUNT_COLUMNS)).where(service_accounts.c.user_id == user_id),
    }
    return select(
        *_PERSON,
        exists().where(totp_factors.c.user_id == user_id).label("has_totp"),
        exists().where(ban_digests.c.kind == DigestKind.DEVICE.value).label("device_bans"),
        *(one.scalar_subquery().label(name) for name, one in asked.items()),
        *holdings_of(user_id),
        _APPLICATIONS.scalar_subquery().label("applications"),
        structure.STRUCTURE_VERSION.label("structure"),
        KEYS_VERSION,
    )


_USER_ID: Final = bindparam("user_id", type_=Text())
FACTS = Statement(_select_facts(_USER_ID).where(users.c.user_id == _USER_ID))
FACTS_OF_MANY = Statement(
    _select_facts(users.c.user_id).where(InStringList(users.c.user_id, "ids")).order_by(users.c.user_id)
)


def facts(user_id: str, application_ids: tuple[int, ...]) -> Verb[Facts | None]:
    rows = yield FACTS(user_id=user_id, applications=application_ids)
    return _facts(rows[0], application_ids) if rows else None


def facts_of_many(user_ids: Collection[str], application_ids: Collection[int]) -> Verb[Sequence[Facts]]:
    """Return facts by user id, without users that do not exist."""
    rows = yield FACTS_OF_MANY(ids=sorted(user_ids), applications=sorted(application_ids))
    return [_facts(row, application_ids) for row in rows]


def _facts(row: Row, application_ids: Collection[int]) -> Facts:
    return Facts(
        subject=_subject(row),
        login=row.login,
        blocked=row.blocked,
        rev=row.rev,
        has_strong_factor=bool(row.has_totp) or row.passkeys > 0,
        groups=split_lines(row.groups),
        owns={project_id: end_of(expired, ttl) for project_id, expired, ttl in row.owns or ()},
        service_account=_account(row.account or ()),
        records=records_from_row(row, row.user_id, application_ids),
        applications={cells[0]: _state(cells) for cells in row.applications or ()},
        structure=row.structure,
        keys_version=row.keys_version,
        bans=bans_from_document(row.bans),
        device_bans=bool(row.device_bans),
    )


def _subject(row: Row) -> ConditionSubject:
    domain = (row.login_key or "").rpartition("@")[2] if row.email_verified else ""
    return ConditionSubject(
        user_id=row.user_id,
        domain=domain or None,
        tags=split_lines(row.tags) | _kept_tags(row),
        purchases=split_lines(row.purchases),
    )


def _kept_tags(row: Row) -> frozenset[str]:
    return User(
        user_id=row.user_id,
        login=None,
        nick="",
        reg_time=0,
        email_verified=row.email_verified,
        phone_verified=row.phone_verified,
        email_code=row.email_code,
        sealed_totp=b"" if row.has_totp else None,
        passkeys=row.passkeys,
    ).system_tags


def _account(rows: Collection[Cells]) -> ServiceAccount | None:
    for cells in rows:
        return account_from_cells(cells)
    return None


def _state(cells: Cells) -> ApplicationState:
    application_id, project_id, removed, version, schema_version = cells
    return ApplicationState(
        application_id=application_id,
        project_id=project_id,
        removed=bool(removed),
        version=version,
        schema_version=schema_version,
    )


class PermissionStorage(SqlStore):
    install_central = write(install_central)
    _cached_facts = cached_read(facts)
    application_models = snapshot_read(application_models)
    structure = snapshot_read(read_structure)
    login_section = read(login_section)
    has_email_secret = read(has_email_secret)
    add_email_secret = write(add_email_secret)
    email_secrets = read(all_email_secrets)
    remove_email_secret = write(remove_email_secret)
    root_roles = read(root_roles)

    async def facts(self, user_id: str, application_ids: Collection[int]) -> Facts | None:
        return await self._cached_facts(user_id, tuple(sorted(application_ids)))


# Reads about many people at once (CandidateStore): candidates by index, a page at a time.


class DomainOf(DialectFunction[str]):
    """The part after the only `@` of a login key."""

    inherit_cache = True
    type = Text()
    on_postgres = "split_part({0}, '@', 2)"
    on_sqlite = "substr({0}, instr({0}, '@') + 1)"


_THIS_APPLICATION: Final = bindparam("application", type_=BigInteger())
_CANDIDATE_QUERIES: Final[Mapping[str, tuple[Select[Any], ...]]] = {
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
_LIST_CRITERIA: Final = frozenset(_CANDIDATE_QUERIES) - {"entries"}
_APPLICATION_CRITERIA: Final = frozenset({"roles", "projects", "entries"})
EVERY_USER = Statement(
    select(users.c.user_id)
    .where(users.c.user_id > bindparam("after"))
    .order_by(users.c.user_id)
    .limit(bindparam("most"))
)


MODEL_VERSIONS = Statement(
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
def _candidates_statement(criteria: frozenset[str]) -> Statement:
    """Select a page of candidates.

    The first page of the union is within the first pages of its parts, so no part is read to its end.
    """
    firsts = [_first_page(one).subquery() for way in sorted(criteria) for one in _CANDIDATE_QUERIES[way]]
    return Statement(_first_page(select(union(*(select(first.c.user_id) for first in firsts)).subquery().c.user_id)))


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
    found = [] if asked is None else [row.user_id for row in (yield asked)]
    people = yield from facts_of_many(found[:limit], [among.application_id])
    named = {project_id for person in people for project_id in person.projects}
    return CandidatePage(
        people=people,
        snapshot=(yield from application_snapshot(among.application_id, named | set(project_ids), known=known)),
        last=found[:limit][-1] if found else after,
        more=len(found) > limit,
    )


def _page_query(among: CandidateFilter, after: str, most: int) -> BoundStatement | None:
    """None when there can be no candidates."""
    if among.everyone:
        return EVERY_USER(after=after, most=most)
    ways = frozenset(way for way in _CANDIDATE_QUERIES if getattr(among, way))
    if not ways:
        return None
    lists = {way: sorted(getattr(among, way)) for way in ways & _LIST_CRITERIA}
    here = {"application": among.application_id} if ways & _APPLICATION_CRITERIA else {}
    return _candidates_statement(ways)(after=after, most=most, **lists, **here)


class CandidateStorage(SqlStore):
    application_snapshot = snapshot_read(application_snapshot)
    candidate_page = snapshot_read(candidate_page)
