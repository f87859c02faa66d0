"""The rights that someone who invites has now, when an invitation is sent and again when it is accepted (R9)."""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.authentication.callers import Caller
from gatehouse.permissions.authentication.vouching import CallerKind
from gatehouse.permissions.errors import ApplicationNotFound, NoRight
from gatehouse.permissions.evaluation.loader import PermissionLoader
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.operators import operator_actor
from gatehouse.permissions.store import PermissionStore

OPERATOR: Final = "cli"  # as the audit log names it


class InviterRights(Struct, frozen=True, kw_only=True, eq=False):
    authenticator: Authenticator
    permission_loader: PermissionLoader
    models: PermissionStore
    clock: Clock

    async def load(
        self, inviter: str, application_id: int, *, vouching_application_id: int, origin: AuditOrigin
    ) -> tuple[Actor, ApplicationModel]:
        """Return the inviter as an actor with rights on the application; an empty `inviter` is the operator.

        Without an address: a right that an address gives would not exist when the invitation is accepted. Raises
        NoRight for one who is gone, blocked or banned, and ApplicationNotFound.
        """
        if not inviter:
            return await self._load_operator(application_id, origin)
        facts = await self.permission_loader.load_facts(inviter, {CENTRAL_APPLICATION, application_id})
        now = self.clock.now()
        if facts is None or facts.blocked or facts.ban_from(CENTRAL_APPLICATION, now) is not None:
            raise NoRight(f"inviter {inviter} is gone, blocked or banned")
        authenticated = await self.authenticator.attach_rights(
            Caller(
                by=CallerKind.FACTOR,
                facts=facts,
                application_id=application_id,
                vouching_application_id=vouching_application_id or None,
            )
        )
        if authenticated.model is None:
            raise ApplicationNotFound if authenticated.rights.administers else NoRight("unknown application")
        return authenticated.actor(replace(origin, actor=inviter)), authenticated.model

    async def _load_operator(self, application_id: int, origin: AuditOrigin) -> tuple[Actor, ApplicationModel]:
        models = await self.models.application_models([CENTRAL_APPLICATION, application_id])
        if application_id not in models:
            raise ApplicationNotFound
        origin = replace(origin, actor=OPERATOR)
        return operator_actor(models[CENTRAL_APPLICATION], origin, self.clock.now()), models[application_id]
