"""What a person gave to clients and to programs that act through them: listed, used, and ended one by one (R11)."""

from collections.abc import Sequence

from msgspec import Struct

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.times import DAY
from gatehouse.oauth.api_model import resource_in
from gatehouse.oauth.delegation import ActingApplication, acting_applications, delegated_applications
from gatehouse.oauth.model import GivenGrant, Grant
from gatehouse.oauth.store import ClientStore, ConsentStore, GrantStore


class ListedGrant(Struct, frozen=True, kw_only=True):
    grant: GivenGrant
    acting: tuple[ActingApplication, ...]  # whose programs act through it

    @property
    def resource(self) -> str:
        return resource_in(self.grant.scopes)


class GrantUses(Struct, kw_only=True, eq=False):
    grants: GrantStore
    clock: Clock

    async def mark(self, grant: Grant) -> None:
        """Store that a token of the grant was exchanged, once a day."""
        now = self.clock.now()
        if now // DAY > grant.last_used_at // DAY:
            await self.grants.mark_grant_used(grant.grant_id, now)


class GivenGrants(Struct, kw_only=True, eq=False):
    store: ConsentStore
    grants: GrantStore
    clients: ClientStore
    recorder: Recorder
    clock: Clock

    async def of_user(self, user_id: str) -> Sequence[ListedGrant]:
        """Return the live grants of a person, the newest first."""
        given = await self.store.grants_of_user(user_id, self.clock.now())
        numbers = {number for grant in given for number in delegated_applications(grant.scopes)}
        programs = await self.clients.acting_programs(sorted(numbers))
        return tuple(
            ListedGrant(
                grant=grant,
                acting=acting_applications(
                    (program for program in programs if program.acts_through(grant.application_id)), grant.scopes
                ),
            )
            for grant in given
        )

    async def end(self, user_id: str, grant_id: str, origin: AuditOrigin) -> bool:
        """End one grant of this person with all its tokens; False if they have no such grant."""
        given = await self.store.grants_of_user(user_id, self.clock.now())
        grant = next((one for one in given if one.grant_id == grant_id), None)
        if grant is None:
            return False
        details = {"client_id": grant.client_id, "grant_id": grant_id}
        record = self.recorder.record(AuditEvent.GRANT_REVOKED, origin, subject=user_id, details=details)
        return await self.grants.revoke_grant(grant_id, self.clock.now(), record)
