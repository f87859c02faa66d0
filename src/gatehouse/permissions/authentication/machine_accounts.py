"""Service accounts at the token endpoint (R9): implements MachineAccounts of oauth/store.py."""

from dataclasses import dataclass

from gatehouse.kernel.addresses import Address
from gatehouse.permissions.authentication.callers import CallerIdentifier, refuse_other_addresses
from gatehouse.permissions.authentication.credentials import DEFAULT_POLICY, RequestCredentials
from gatehouse.permissions.errors import WrongCredentials
from gatehouse.permissions.evaluation.loader import PermissionLoader
from gatehouse.permissions.model.application import CENTRAL_ID
from gatehouse.permissions.model.facts import Facts
from gatehouse.permissions.model.project import ServiceAccount
from gatehouse.tokens.claims import InvalidToken


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveServiceAccount:
    user_id: str
    project_id: str
    rev: int
    public_key: str


class ServiceAccountAuthenticator:
    def __init__(self, *, caller_identifier: CallerIdentifier, permission_loader: PermissionLoader) -> None:
        self._caller_identifier = caller_identifier
        self._permission_loader = permission_loader

    async def find_live(self, user_id: str) -> LiveServiceAccount | None:
        facts, account = await self._find(user_id)
        return None if facts is None or account is None else live_account(facts, account)

    async def verify_jwt(self, jwt: str, *, address: Address | None, source: str) -> LiveServiceAccount:
        credentials = RequestCredentials(bearer=jwt, address=address, source=source)
        try:
            caller = await self._caller_identifier.identify(credentials, DEFAULT_POLICY)
        except WrongCredentials as error:
            raise InvalidToken(error.detail) from None
        if caller.facts is None or caller.facts.service_account is None:
            raise InvalidToken("not the JWT of a service account")
        return live_account(caller.facts, caller.facts.service_account)

    async def may_call_from(self, user_id: str, address: Address | None) -> bool:
        _, account = await self._find(user_id)
        try:
            refuse_other_addresses((account.ip_ranges if account else (),), address)
        except WrongCredentials:
            return False
        return account is not None

    async def _find(self, user_id: str) -> tuple[Facts | None, ServiceAccount | None]:
        facts = await self._permission_loader.load_facts(user_id, {CENTRAL_ID})
        account = None if facts is None or facts.blocked else facts.service_account
        if facts is None or account is None or account.revoked:
            return facts, None
        live = await self._permission_loader.is_project_live(account.project_id, facts)
        return facts, account if live else None


def live_account(facts: Facts, account: ServiceAccount) -> LiveServiceAccount:
    return LiveServiceAccount(
        user_id=account.user_id, project_id=account.project_id, rev=facts.rev, public_key=account.public_key
    )
