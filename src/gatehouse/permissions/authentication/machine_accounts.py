"""Service accounts at the token endpoint (R9): finds and verifies them as oauth/store.py says."""

from msgspec import Struct

from gatehouse.accounts.model import CENTRAL_APPLICATION, MachineAccount
from gatehouse.fields.derive import copy_as
from gatehouse.kernel.addresses import Address
from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.authentication.credentials import DEFAULT_POLICY, RequestCredentials
from gatehouse.permissions.errors import WrongCredentials
from gatehouse.permissions.evaluation.loader import PermissionLoader
from gatehouse.permissions.model.facts import Facts
from gatehouse.permissions.model.service_account import ServiceAccount
from gatehouse.tokens.claims import InvalidToken


class ServiceAccountAuthenticator(Struct, kw_only=True, eq=False):
    authenticator: Authenticator
    permission_loader: PermissionLoader

    async def find_live(self, user_id: str) -> MachineAccount | None:
        facts = await self.permission_loader.load_facts(user_id, {CENTRAL_APPLICATION})
        account = None if facts is None or facts.blocked else facts.service_account
        if facts is None or account is None or account.revoked:
            return None
        live = await self.permission_loader.is_project_live(account.project_id, facts)
        return machine_account(facts, account) if live else None

    async def verify_jwt(self, jwt: str, address: Address | None, source: str) -> MachineAccount:
        """Verify the account's own JWT as the permission endpoints do. Raises InvalidToken."""
        credentials = RequestCredentials(bearer=jwt, address=address, source=source)
        try:
            caller = await self.authenticator.identify(credentials, DEFAULT_POLICY)
        except WrongCredentials as error:
            raise InvalidToken(error.detail) from None
        if caller.facts is None or caller.facts.service_account is None:
            raise InvalidToken("not the JWT of a service account")
        return machine_account(caller.facts, caller.facts.service_account)


def machine_account(facts: Facts, account: ServiceAccount) -> MachineAccount:
    return copy_as(MachineAccount, account, rev=facts.rev)
