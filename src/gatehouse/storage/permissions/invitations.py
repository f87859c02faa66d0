"""Stores invitations to hold a role or to join a group (AccessInvitationStore)."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import and_, bindparam, delete, insert, or_, select

from gatehouse.audit.model import AuditRecord
from gatehouse.mail.model import OutboxMail
from gatehouse.permissions.model.invitation import NEWEST, AccessInvitation, InvitationPosition, InvitedAccess
from gatehouse.storage import mail
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.runner import SqlStore, read, write
from gatehouse.storage.statements import Row, Statement, Verb
from gatehouse.storage.tables.invitations import access_invitations

_INVITATION = access_invitations.c.invitation_id == bindparam("invitation")
_IS_OPEN = access_invitations.c.expires_at > bindparam("now")
_NEWEST_FIRST = (access_invitations.c.created_at.desc(), access_invitations.c.invitation_id)
_IS_AFTER = or_(
    access_invitations.c.created_at < bindparam("created_at"),
    and_(
        access_invitations.c.created_at == bindparam("created_at"),
        access_invitations.c.invitation_id > bindparam("invitation"),
    ),
)

INSERT_INVITATION = Statement(lambda: insert(access_invitations))
DROP_SAME = Statement(
    lambda: delete(access_invitations).where(
        *(
            access_invitations.c[name] == bindparam(f"same_{name}")
            for name in ("user_id", "inviter", "application_id", "role", "project_id", "group_id")
        )
    )
)
BY_ID = Statement(lambda: select(access_invitations).where(_INVITATION, _IS_OPEN))
OF_USER = Statement(
    lambda: (
        select(access_invitations)
        .where(access_invitations.c.user_id == bindparam("user"), _IS_OPEN, _IS_AFTER)
        .order_by(*_NEWEST_FIRST)
        .limit(bindparam("most"))
    )
)
OF_PROJECT = Statement(
    lambda: (
        select(access_invitations)
        .where(access_invitations.c.invited_into == bindparam("project"), _IS_OPEN, _IS_AFTER)
        .order_by(*_NEWEST_FIRST)
        .limit(bindparam("most"))
    )
)
TAKE = Statement(
    lambda: (
        delete(access_invitations)
        .where(_INVITATION, access_invitations.c.user_id == bindparam("user"), _IS_OPEN)
        .returning(access_invitations.c.invitation_id)
    )
)
WITHDRAW = Statement(
    lambda: (
        delete(access_invitations)
        .where(_INVITATION, access_invitations.c.invited_into == bindparam("project"))
        .returning(access_invitations.c.user_id)
    )
)


def add_invitation(invitation: AccessInvitation, entry: AuditRecord, mails: Sequence[OutboxMail]) -> Verb[None]:
    row = _row_of(invitation)
    same = ("user_id", "inviter", "application_id", "role", "project_id", "group_id")
    yield DROP_SAME(**{f"same_{name}": row[name] for name in same})
    yield INSERT_INVITATION(**row)
    yield from mail.queue_mails(mails, invitation.user_id)
    yield from add_audit_record(entry)


def open_invitation(invitation_id: str, now: int) -> Verb[AccessInvitation | None]:
    rows = yield BY_ID(invitation=invitation_id, now=now)
    return _invitation(rows[0]) if rows else None


def open_invitations_of(
    user_id: str, now: int, most: int, after: InvitationPosition = NEWEST
) -> Verb[Sequence[AccessInvitation]]:
    page = {"now": now, "most": most, "created_at": after.created_at, "invitation": after.invitation_id}
    return [_invitation(row) for row in (yield OF_USER(user=user_id, **page))]


def open_invitations_into(
    project_id: str, now: int, most: int, after: InvitationPosition = NEWEST
) -> Verb[Sequence[AccessInvitation]]:
    page = {"now": now, "most": most, "created_at": after.created_at, "invitation": after.invitation_id}
    return [_invitation(row) for row in (yield OF_PROJECT(project=project_id, **page))]


def take_invitation(invitation_id: str, user_id: str, entry: AuditRecord, now: int) -> Verb[bool]:
    taken = yield TAKE(invitation=invitation_id, user=user_id, now=now)
    if taken:
        yield from add_audit_record(entry)
    return bool(taken)


def withdraw_invitation(invitation_id: str, project_id: str, entry: AuditRecord) -> Verb[bool]:
    gone = yield WITHDRAW(invitation=invitation_id, project=project_id)
    if gone:
        yield from add_audit_record(entry)
    return bool(gone)


def _row_of(invitation: AccessInvitation) -> Mapping[str, Any]:
    access = invitation.access
    return {
        "invitation_id": invitation.invitation_id,
        "user_id": invitation.user_id,
        "login": invitation.login,
        "inviter": invitation.inviter,
        "vouching_application_id": invitation.vouching_application_id,
        "application_id": access.application_id,
        "role": access.role,
        "role_end": access.end,
        "project_id": access.project_id,
        "group_id": access.group_id,
        "invited_into": invitation.invited_into,
        "created_at": invitation.created_at,
        "expires_at": invitation.expires_at,
    }


def _invitation(row: Row) -> AccessInvitation:
    return AccessInvitation(
        invitation_id=row.invitation_id,
        user_id=row.user_id,
        login=row.login,
        inviter=row.inviter,
        vouching_application_id=row.vouching_application_id,
        access=InvitedAccess(
            application_id=row.application_id,
            role=row.role,
            end=row.role_end,
            project_id=row.project_id,
            group_id=row.group_id,
        ),
        invited_into=row.invited_into,
        created_at=row.created_at,
        expires_at=row.expires_at,
    )


class AccessInvitationStorage(SqlStore):
    add = write(add_invitation)
    find = read(open_invitation)
    of_user = read(open_invitations_of)
    into_project = read(open_invitations_into)
    take = write(take_invitation)
    record_failure = write(add_audit_record)
    withdraw = write(withdraw_invitation)
