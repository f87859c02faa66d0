"""The errors of the permissions package."""

from typing import Final

from gatehouse.kernel.errors import BadInput, Conflict, NotFound, Refused
from gatehouse.permissions.model.limits import MAX_ACCESS_KEYS, MAX_CUSTOM_KEYS, MAX_GROUPS

MAX_ANSWER_BYTES: Final = 8 * 2**20  # bytes of an answer of the permission endpoints


class ApplicationNotFound(NotFound):
    public = "Application not found."


class ProjectNotFound(NotFound):
    public = "Project not found."


class ProjectNotRemoved(Conflict):
    public = "The project is active: remove it first, then delete it permanently."


class GroupNotFound(NotFound):
    public = "Group not found."


class RoleNotFound(NotFound):
    public = "Role not found."


class AccessKeyNotFound(NotFound):
    public = "Access key not found."


class KeyNotFound(NotFound):
    public = "Key not found."


class PersonNotFound(NotFound):
    public = "user not found"  # the words of interface §7


class NameTaken(Conflict):
    public = "This name is already used."


class SiteTaken(Conflict):
    public = "The site is already protected by another application."


class ResourceTaken(Conflict):
    public = "Another application declares this API resource, or declared it before it was removed."


class LimitReached(Conflict):
    public = "The limit is reached."


class GroupsFull(LimitReached):
    public = f"A project can have at most {MAX_GROUPS} groups."


class AccessKeysFull(LimitReached):
    public = f"An application can have at most {MAX_ACCESS_KEYS} access keys."


class CustomKeysFull(LimitReached):
    public = f"An application can have at most {MAX_CUSTOM_KEYS} custom keys."


class RoleFull(Conflict):
    public = "The role has reached its user limit."


class VersionConflict(Conflict):
    public = "It was changed in the meantime. Reload and try again."


class LastOwner(Conflict):
    public = "A project needs at least one owner."


class GroupListed(Conflict):
    public = "The group is on the project's allow or disallow list. Remove it there first."


class OwnerIsNoPerson(Refused):
    public = "A service account cannot own a project."


class ProtectedRoleForGuest(Refused):
    """A guest is only a key on a device, which anyone may have (R10)."""

    public = "A guest cannot hold a protected role. The guest needs an account first."


class NoAdministratorLeft(Conflict):
    public = "At least one person must administer the installation."


class ProtectedHeld(Conflict):
    """Public roles hold a rule that is to be protected; the detail names them, and is shown (R5)."""

    public = "Public roles contain a rule that would become protected."


class ApplicationTooLarge(Conflict):
    """The application exceeds a limit; the detail has the numbers and is shown."""

    public = "The application would be too large."


class NoRight(Refused):
    public = "You are not allowed to do this."


class AdministratorsOnly(NoRight):
    """The object takes can_administer; the detail says why, and is shown to callers who may see the object."""


class WrongCredentials(Refused):
    """The credentials are valid, but not for this request: another application or another address."""

    public = "These credentials are not valid for this request."


class Malformed(BadInput):
    """The request's data does not follow the interface."""


class AnswerTooLarge(Malformed):
    """The response would exceed the limit; `narrower` names the smaller request to make."""

    def __init__(self, narrower: str) -> None:
        super().__init__(f"answer too large: more than {MAX_ANSWER_BYTES // 2**20} MB; {narrower}")


class TooMuch(Malformed):
    """More rules than allowed: refused as a whole, never cut (checklist SC-16)."""

    public = "There are too many rules."
