"""Decides which changes a caller may read (interface §4.14, R6).

An application reads the changes of its own; a person or service account those of an application in which they may
read everyone's permissions; `can_administer` reads everything. A change elsewhere that may affect the application's
users is shown without saying what it is about, so that no one has to poll for it.
"""

from collections.abc import Set as AbstractSet
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.authentication.callers import Caller
from gatehouse.permissions.authentication.credentials import CredentialPolicy, RequestCredentials
from gatehouse.permissions.changes.model import ABOUT_AN_APPLICATION, StreamChange, StreamChangeKind, user_bucket
from gatehouse.permissions.errors import ApplicationNotFound, Malformed, WrongCredentials
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.questions.check import refuse_about_others
from gatehouse.permissions.rights.guard import Operation, is_open
from gatehouse.permissions.store import ApplicationStore

READ_CHANGES: Final = CredentialPolicy(audience=True, key=True, no_jwt=True)


class ChangeReader(Struct, frozen=True, kw_only=True):
    """A caller with what they may read, and the kinds and the application they asked for."""

    name: str
    everything: bool = False
    application: Application | None = None
    kinds: AbstractSet[StreamChangeKind] = frozenset()  # empty: all

    def view(self, change: StreamChange) -> StreamChange | None:
        """Return the change as this caller may see it; None if it is not for them."""
        if self.kinds and change.kind not in self.kinds:
            return None
        if self.application is None:
            return change if self.everything else None
        if change.kind in ABOUT_AN_APPLICATION or change.kind is StreamChangeKind.RECORD:
            return change if change.application_id == self.application.application_id else None
        is_own = bool(change.project_id) and change.project_id == self.application.project_id
        return change if self.everything or is_own else without_names(change)


def without_names(change: StreamChange) -> StreamChange:
    return replace(
        change,
        event="",
        project_id="",
        group_id="",
        client_id="",
        user_id="",
        user_bucket=user_bucket(change.user_id) if change.user_id else "",
    )


class ChangeReaders:
    def __init__(self, *, authenticator: Authenticator, applications: ApplicationStore) -> None:
        self._authenticator = authenticator
        self._applications = applications

    async def authorize(
        self, credentials: RequestCredentials, application_id: int | None, kinds: AbstractSet[StreamChangeKind]
    ) -> ChangeReader:
        """Return the reader. Raises InvalidToken, WrongCredentials, NoRight, Malformed, ApplicationNotFound."""
        if credentials.signed is not None:
            raise WrongCredentials("a Signature is valid for a minute, a stream needs the access key")
        caller = await self._authenticator.identify(credentials, READ_CHANGES, application_id=application_id)
        if caller.facts is None:
            return ChangeReader(name=caller.name, application=await self._application_of(caller), kinds=kinds)
        request = await self._authenticator.attach_rights(caller)
        if is_open(request.rights, Operation.ADMINISTER):
            named = None if request.application_id is None else request.named_application().application
            return ChangeReader(name=caller.name, everything=True, application=named, kinds=kinds)
        if request.application_id is None:
            raise Malformed("application_id: required")
        refuse_about_others(request)
        return ChangeReader(name=caller.name, application=request.named_application().application, kinds=kinds)

    async def _application_of(self, caller: Caller) -> Application:
        """Return the application of a service that calls for itself."""
        application = await self._applications.application(caller.application_id or 0)
        if application.removed:
            raise ApplicationNotFound
        return application
