"""What a question about another person is answered from; a merged guest is found by its former ID (R10)."""

from msgspec import Struct

from gatehouse.accounts.own_account.model import OwnAccountStore
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.authentication.authenticator import AuthenticatedRequest
from gatehouse.permissions.authentication.callers import Caller
from gatehouse.permissions.errors import PersonNotFound
from gatehouse.permissions.evaluation.loader import EvaluationInput, PermissionLoader


class PersonInputLoader(Struct, kw_only=True, eq=False):
    permission_loader: PermissionLoader
    guests: OwnAccountStore
    clock: Clock

    async def load(self, user_id: str, application_id: int, *, by_former_id: bool) -> EvaluationInput:
        """Return the person's facts in the application; with `by_former_id` also by a former ID.

        Raises PersonNotFound.
        """
        facts = await self.permission_loader.load_facts(user_id, (application_id,))
        if facts is None and by_former_id:
            account = await self.guests.account_of_former_id(user_id, self.clock.now())
            if account is not None:
                facts = await self.permission_loader.load_facts(account, (application_id,))
        if facts is None:
            raise PersonNotFound
        return await self.permission_loader.load_input(facts)


def may_use_former_ids(caller: Caller, request: AuthenticatedRequest | None = None) -> bool:
    """Whether the caller finds people by former IDs: an application that vouches for the request, can_administer."""
    vouched = caller.vouching_application_id is not None
    return vouched or (request is not None and request.rights.administers)
