"""Invitations to hold a role or to join a group: what counts once the invited person accepts."""

from typing import Final

from msgspec import Struct

from gatehouse.kernel.times import DAY

MAX_PROJECT_INVITATIONS: Final = 100  # a day and project, by its owners (R9)
PROJECT_INVITATION_WINDOW: Final = DAY  # seconds


class InvitedAccess(Struct, frozen=True, kw_only=True):
    """A role of an application, a group, or both."""

    application_id: int = 0
    role: str = ""  # its name or key
    end: int = 0  # of the role, in Unix seconds; 0 for none
    project_id: str = ""  # where the role counts; empty for the whole application
    group_id: str = ""

    def __bool__(self) -> bool:
        return bool(self.role or self.group_id)


class AccessInvitation(Struct, frozen=True, kw_only=True):
    """Access that an account gets when its owner accepts; the inviter's right is checked again then."""

    invitation_id: str
    user_id: str
    login: str  # the address it was sent to
    inviter: str  # user ID; empty for the operator at the command line
    vouching_application_id: int = 0  # the service that vouched for the inviter
    access: InvitedAccess
    invited_into: str = ""  # the project whose managers see it
    created_at: int
    expires_at: int


class InvitationPosition(Struct, frozen=True):
    """Where a page of invitations ended; the older ones come after it."""

    created_at: int
    invitation_id: str


NEWEST: Final = InvitationPosition(2**63 - 1, "")
