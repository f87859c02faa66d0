"""Reads what somebody sees (admin/sight.py)."""

from collections.abc import Collection

from sqlalchemy import bindparam, select

from gatehouse.storage.runner import Stored, look
from gatehouse.storage.statements import EMPTY, Statement, Verb
from gatehouse.storage.tables import user_records

OWN_APPLICATIONS = Statement(
    select(user_records.c.application_id).where(
        user_records.c.user_id == bindparam("user_id"), user_records.c.secret_data != EMPTY
    )
)


def own_applications(user_id: str) -> Verb[Collection[int]]:
    return [row.application_id for row in (yield OWN_APPLICATIONS(user_id=user_id))]


class SightStorage(Stored):
    own_applications = look(own_applications)
