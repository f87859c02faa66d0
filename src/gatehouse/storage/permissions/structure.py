"""Locks projects while they change, and counts the changes for caches (R5).

Lock order: the structure (shared to change a project or to assign something, exclusive to remove what may be
assigned, and for what concerns projects that are not known yet), the row of the project, the names of projects, the
schema of the application, user records by user id. Several rows of another table are locked in the order of their
keys.
"""

from collections.abc import Callable, Collection
from typing import Final

from sqlalchemy import ColumnElement, Integer, bindparam, func, literal_column, select, union_all, update

from gatehouse.permissions.errors import ProjectNotFound
from gatehouse.storage.permissions.grant_keys import InSelect
from gatehouse.storage.permissions.project_models import PROJECT_ID_BY_NAME
from gatehouse.storage.statements import DialectFunction, InStringList, Statement, Verb
from gatehouse.storage.tables.permissions import application_schemas
from gatehouse.storage.tables.projects import project_services, projects

STRUCTURE_LOCK_ID: Final = 0x7374_7275  # any constants of our own
NAMES_LOCK_ID: Final = 0x6E61_6D65


class AdvisoryLock(DialectFunction[int]):
    """A lock of the transaction. SQLite needs none: it has one writer at a time.

    PostgreSQL queues advisory locks; at a row lock new shared holders would overtake an exclusive waiter.
    """

    inherit_cache = True
    type = Integer()
    on_postgres = "{0}"
    on_sqlite = "1"


def _lock(take: Callable[[ColumnElement[int]], ColumnElement[int]], lock_id: int) -> Statement:
    return Statement(lambda: select(AdvisoryLock(take(literal_column(str(lock_id), Integer))).label("held")))


LOCK_STRUCTURE_SHARED = _lock(func.pg_advisory_xact_lock_shared, STRUCTURE_LOCK_ID)
LOCK_STRUCTURE = _lock(func.pg_advisory_xact_lock, STRUCTURE_LOCK_ID)
LOCK_NAMES = _lock(func.pg_advisory_xact_lock, NAMES_LOCK_ID)
_NEXT_MODEL_VERSION: Final = projects.c.model_version + 1
BEGIN_CHANGE = Statement(
    lambda: (
        update(projects)
        .where(projects.c.project_id == PROJECT_ID_BY_NAME)
        .values(model_version=_NEXT_MODEL_VERSION)
        .returning(projects.c.project_id)
    )
)
TOUCH_PROJECT = Statement(
    lambda: (
        update(projects)
        .where(projects.c.project_id == bindparam("of"))
        .values(version=projects.c.version + 1, model_version=_NEXT_MODEL_VERSION)
    )
)
_CONNECTING = select(project_services.c.project_id).where(
    project_services.c.application_id == bindparam("application")
)
_HOMES = select(projects.c.project_id).where(InStringList(projects.c.project_id, "homes"))
TOUCH_MODELS = Statement(  # of the application's own projects, before and after, and of those that connect it
    lambda: (
        update(projects)
        .where(InSelect(projects.c.project_id, union_all(_CONNECTING, _HOMES)))
        .values(model_version=_NEXT_MODEL_VERSION)
    )
)
# Locks the schema: until the commit no role is removed or becomes protected.
LOCK_SCHEMA_SHARED = Statement(
    lambda: (
        select(application_schemas.c.version)
        .where(application_schemas.c.application_id == bindparam("application"))
        .with_for_update(read=True, key_share=True)
    )
)


def lock_structure_shared() -> Verb[None]:
    """Lock the structure shared.

    First in every verb that assigns something or changes a project, so that what can be assigned stays until the
    commit. This and the lock below are taken before any row lock, so that no holder of row locks waits for them.
    """
    yield LOCK_STRUCTURE_SHARED()


def lock_structure() -> Verb[None]:
    """Lock the structure, so that no project changes and nothing is assigned until the commit.

    First in every verb that removes a group, an application, a role, a project or an account.
    """
    yield LOCK_STRUCTURE()


def begin_project_change(name: str) -> Verb[None]:
    """Lock a project and increment the version of its model, which caches compare. Raises ProjectNotFound.

    First in every verb that changes the project or its groups, under a lock of the structure. So changes of one
    project run one after the other, and those of two projects at the same time.
    """
    if not (yield BEGIN_CHANGE(name=name)):
        raise ProjectNotFound


def lock_names() -> Verb[None]:
    """Lock the names of all projects, so that a name that is free stays free until the commit."""
    yield LOCK_NAMES()


def touch_project(project_id: str) -> Verb[None]:
    """Increment the versions of a project that another change concerns; the caller has locked the structure."""
    yield TOUCH_PROJECT(of=project_id)


def touch_models(application_id: int, homes: Collection[str]) -> Verb[None]:
    """Increment the versions of the models that name an application: of these projects, and of all that connect it.

    The caller has locked the structure.
    """
    yield TOUCH_MODELS(application=application_id, homes=sorted(homes))
