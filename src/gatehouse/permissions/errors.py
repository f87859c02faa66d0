"""What can go wrong with permissions."""

from typing import Final

from gatehouse.kernel.errors import BadInput, Conflict, NotFound, Refused
from gatehouse.permissions.model.access_key import MAX_ACCESS_KEYS
from gatehouse.permissions.model.application_key import MAX_CUSTOM_KEYS
from gatehouse.permissions.model.group import MAX_GROUPS

MAX_ANSWER_BYTES: Final = 8 * 2**20  # bytes of an answer of the permission endpoints


class ApplicationNotFound(NotFound):
    public = "There is no such application."


class ProjectNotFound(NotFound):
    public = "There is no such project."


class ProjectNotRemoved(Conflict):
    public = "The project is in use: remove it first, and then for good."


class GroupNotFound(NotFound):
    public = "There is no such group."


class RoleNotFound(NotFound):
    public = "There is no such role."


class AccessKeyNotFound(NotFound):
    public = "There is no such access key."


class KeyNotFound(NotFound):
    public = "There is no such key."


class PersonNotFound(NotFound):
    public = "user not found"  # the words of interface §7


class NameTaken(Conflict):
    public = "The name is taken."


class LimitReached(Conflict):
    public = "The limit is reached."


class GroupsFull(LimitReached):
    public = f"A project has at most {MAX_GROUPS} groups."


class AccessKeysFull(LimitReached):
    public = f"An application has at most {MAX_ACCESS_KEYS} access keys."


class CustomKeysFull(LimitReached):
    public = f"An application has at most {MAX_CUSTOM_KEYS} keys of its own."


class RoleFull(Conflict):
    public = "The role has as many users as it may have."


class VersionConflict(Conflict):
    public = "It was changed meanwhile; read it again."


class LastOwner(Conflict):
    public = "A project needs an owner."


class GroupListed(Conflict):
    public = "The group stands in allow or disallow of its project: take it out there first."


class OwnerIsNoPerson(Refused):
    public = "A service account never owns a project."


class NobodyAdministers(Conflict):
    public = "Somebody has to administer the installation."


class ProtectedHeld(Conflict):
    """Public roles hold a rule that is to be protected; the detail names them, and is shown (R5)."""

    public = "Public roles hold a rule that would be protected."


class ApplicationTooLarge(Conflict):
    """The detail has the numbers, and is shown."""

    public = "The application would be larger than is allowed."


class NoRight(Refused):
    public = "You have no right to do this."


class AdministratorsOnly(NoRight):
    """The object takes can_administer; the detail says why, and is shown to callers who may see the object."""


class WrongCredentials(Refused):
    """Valid, but not for this request: another application's, another address."""

    public = "These credentials are not good for this request."


class Malformed(BadInput):
    """Something in the request's data is not as the interface says."""


class AnswerTooLarge(Malformed):
    """The answer would be longer than any is; `narrower` names the question to ask instead."""

    def __init__(self, narrower: str) -> None:
        super().__init__(f"answer too large: more than {MAX_ANSWER_BYTES // 2**20} MB; {narrower}")


class TooMuch(Malformed):
    """More rules than are kept: refused whole, never cut (checklist SC-16)."""

    public = "There are more rules than are kept."
