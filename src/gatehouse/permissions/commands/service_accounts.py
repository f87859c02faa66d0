"""Service accounts of a project: list, create, revoke (R1)."""

from collections.abc import Callable, Mapping, Sequence
from secrets import token_hex
from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditRecord
from gatehouse.audit.recorder import Recorder
from gatehouse.fields.derive import draft_members, with_members
from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.kernel.addresses import parse_network
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.ids import new_user_id
from gatehouse.permissions.authentication.application_keys import parse_public_key
from gatehouse.permissions.authentication.service_jwts import DAY_SECONDS, JTI_BYTES, MAX_TOKEN_DAYS
from gatehouse.permissions.commands.projects import find_live_project, find_project
from gatehouse.permissions.commands.user_schemas import refuse_unknown_rules
from gatehouse.permissions.commands.versions import expected_version
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.documents.fields import read_line, read_list
from gatehouse.permissions.documents.records import parse_project, project_document
from gatehouse.permissions.errors import Malformed, NoRight, OwnerIsNoPerson, PersonNotFound
from gatehouse.permissions.model.facts import ApplicationModel, ProjectModel, ScopeHoldings, UserRecord
from gatehouse.permissions.model.rules import Scope
from gatehouse.permissions.model.service_account import SERVICE_ACCOUNT_FIELDS, ServiceAccount
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.granting import PROJECT_OWNER, Granter
from gatehouse.permissions.rights.guard import GuardTarget, Operation, refuse_vouched_caller, require_operation
from gatehouse.permissions.rights.rights import CAN_MANAGE_PROJECT
from gatehouse.permissions.store import PermissionStore, ProjectStore, ServiceAccountStore, UserRecordStore
from gatehouse.tokens.claims import ServiceAccountClaims
from gatehouse.tokens.signer import Signer

HOLDINGS_MEMBERS: Final = ("roles", "applications", "services", "groups")  # as in a membership
MAX_NAME_LENGTH: Final = 64
MAX_RANGES: Final = 32
MAX_RANGE_LENGTH: Final = 64


@with_members(lambda: draft_members(SERVICE_ACCOUNT_FIELDS))
class ServiceAccountDraft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`data`: get needs project_id, delete user_id, save the rest; other members of an entry are ignored (R6)."""

    project_id: str = ""
    user_id: str = ""
    name: str = ""
    comment: str = ""
    ip_ranges: list[object] = []
    public_key: str = ""
    days: int | None = None
    roles: object = None  # this and the next three: what it holds in the project, as in a membership
    applications: object = None
    services: object = None
    groups: object = None
    version: int | UnsetType = UNSET


class ListedServiceAccount(msgspec.Struct, frozen=True, kw_only=True):
    account: ServiceAccount
    holds: Mapping[str, object]  # in its project, as in a membership


class CreatedServiceAccount(SecretRecord, frozen=True, kw_only=True):
    listed: ListedServiceAccount
    jwt: SecretText
    ends_at: int


class ServiceAccountCommands(Struct, kw_only=True, eq=False):
    store: ServiceAccountStore
    people: PermissionStore
    projects: ProjectStore
    records: UserRecordStore
    signer: Signer
    recorder: Recorder
    clock: Clock
    issuer: str
    days: Callable[[], int]

    async def list(self, actor: Actor, central: ApplicationModel, name: str) -> Sequence[ListedServiceAccount]:
        """Return all service accounts of the project by name, also revoked ones."""
        named = grammar.check_project_id(name, "data.project_id")
        project_id = (await find_project(self.projects, actor.rights, named)).project.project_id
        require_operation(actor.rights, Operation.SERVICE_ACCOUNTS, GuardTarget(project_id=project_id))
        records = {
            record.user_id: record
            for record in await self.records.records_in_project(CENTRAL_APPLICATION, project_id)
        }
        return [
            ListedServiceAccount(account=account, holds=holdings_of(records.get(account.user_id), account, central))
            for account in await self.store.service_accounts(project_id)
        ]

    async def create(
        self, actor: Actor, central: ApplicationModel, draft: ServiceAccountDraft
    ) -> CreatedServiceAccount:
        """Create a service account; only this response contains its JWT. Raises NameTaken."""
        refuse_vouched_caller(actor.rights)
        named = grammar.check_project_id(draft.project_id, "data.project_id")
        project = await find_live_project(self.projects, actor.rights, named)
        require_operation(
            actor.rights, Operation.SERVICE_ACCOUNTS, GuardTarget(project_id=project.project.project_id)
        )
        ends_at = self._ends_at(draft.days, self._creator_end(actor, project))
        account = self._account(actor, project, draft)
        record = await self._new_user_record(actor, central, project, account, draft)
        await self.store.create_service_account(
            account, [record], (self._audit_record(AuditEvent.SERVICE_ACCOUNT_MADE, actor, account),)
        )
        jwt = await self.signer.sign(await self._claims(account, ends_at))
        return CreatedServiceAccount(
            listed=ListedServiceAccount(account=account, holds=holdings_of(record, account, central)),
            jwt=jwt,
            ends_at=ends_at,
        )

    async def revoke(self, actor: Actor, user_id: str, version: int | UnsetType = UNSET) -> None:
        """Revoke a service account; only callers who manage its project learn that it exists."""
        refuse_vouched_caller(actor.rights)
        facts = await self.people.facts(grammar.check_user_id(user_id, "data.user_id"), (CENTRAL_APPLICATION,))
        account = None if facts is None else facts.service_account
        if account is None:
            raise PersonNotFound if actor.rights.administers else NoRight(f"{user_id} is not a service account")
        require_operation(actor.rights, Operation.SERVICE_ACCOUNTS, GuardTarget(project_id=account.project_id))
        if not account.revoked:
            entry = self._audit_record(AuditEvent.SERVICE_ACCOUNT_REVOKED, actor, account)
            now, seen = self.clock.now(), expected_version(version)
            await self.store.revoke_service_account(user_id, now, (entry,), seen=seen)

    def _creator_end(self, actor: Actor, project: ProjectModel) -> int:
        """Return when its creator ceases to manage the project, 0 for never; the account ends then (R1)."""
        scope = Scope(project.project.project_id)
        return actor.rights.end_of(scope, CAN_MANAGE_PROJECT, self.clock.now()).expired

    def _ends_at(self, days: int | None, latest: int) -> int:
        days = self.days() if days is None else days
        if not 1 <= days <= MAX_TOKEN_DAYS:
            raise Malformed(f"data.days: must be 1 to {MAX_TOKEN_DAYS}").on_screen(
                "token_days", max_token_days=MAX_TOKEN_DAYS
            )
        wanted = self.clock.now() + days * DAY_SECONDS
        return min(wanted, latest) if latest else wanted

    def _account(self, actor: Actor, project: ProjectModel, draft: ServiceAccountDraft) -> ServiceAccount:
        return ServiceAccount(
            user_id=new_user_id(),
            project_id=project.project.project_id,
            name=read_name(draft.name, "data.name"),
            comment=grammar.check_comment(draft.comment, "data.comment"),
            ip_ranges=read_ranges(draft.ip_ranges, "data.ip_ranges"),
            public_key=parse_public_key(draft.public_key, "data.public_key") if draft.public_key else "",
            created_by=actor.user_id,
            created_at=self.clock.now(),
            jti=token_hex(JTI_BYTES),
        )

    async def _new_user_record(
        self,
        actor: Actor,
        central: ApplicationModel,
        project: ProjectModel,
        account: ServiceAccount,
        draft: ServiceAccountDraft,
    ) -> UserRecord:
        """Return its new record, with nothing that its creator could not assign to a person."""
        scopes = read_scopes(draft, account.project_id, expired=self._creator_end(actor, project))
        refuse_owner(scopes)
        blank = UserRecord(application_id=CENTRAL_APPLICATION, user_id=account.user_id)
        record = replace(blank, scopes=scopes)
        refuse_unknown_rules(central, blank, record)
        Granter(rights=actor.rights, model=central, now=self.clock.now()).refuse_change(blank, record)
        return record

    async def _claims(self, account: ServiceAccount, ends_at: int) -> ServiceAccountClaims:
        facts = await self.people.facts(account.user_id, (CENTRAL_APPLICATION,))
        if facts is None:
            raise PersonNotFound("the service account was already removed")
        return ServiceAccountClaims(
            iss=self.issuer,
            iat=account.created_at,
            exp=ends_at,
            uid=account.user_id,
            sub=account.user_id,
            nick=account.name,
            rev=facts.rev,
            jti=account.jti,
            pub_key=account.public_key or None,
            fip=account.ip_ranges or None,
        )

    def _audit_record(self, event: AuditEvent, actor: Actor, account: ServiceAccount) -> AuditRecord:
        details = {"project_id": account.project_id, "name": account.name, "jti": account.jti}
        return self.recorder.record(event, actor.origin, subject=account.user_id, details=details)


def read_name(document: object, place: str) -> str:
    return read_line(document, place, MAX_NAME_LENGTH, shortest=1)


def read_ranges(document: Sequence[object], place: str) -> tuple[str, ...]:
    ranges: list[str] = []
    for index, element in enumerate(read_list(document, place, MAX_RANGES)):
        where = f"{place}[{index}]"
        text = read_line(element, where, MAX_RANGE_LENGTH, shortest=1)
        try:
            ranges.append(str(parse_network(text)))
        except ValueError:
            raise Malformed(f"{where}: must be a network in CIDR notation, such as 10.0.0.0/8").on_screen(
                "network"
            ) from None
    return tuple(dict.fromkeys(ranges))


def read_scopes(draft: ServiceAccountDraft, project_id: str, *, expired: int) -> Mapping[Scope, ScopeHoldings]:
    document = {name: value for name in HOLDINGS_MEMBERS if (value := getattr(draft, name)) is not None}
    return parse_project(document, project_id, place="data", expired=expired)


def refuse_owner(scopes: Mapping[Scope, ScopeHoldings]) -> None:
    if any(role.role == PROJECT_OWNER for holdings in scopes.values() for role in holdings.roles):
        raise OwnerIsNoPerson


def holdings_of(
    record: UserRecord | None, account: ServiceAccount, central: ApplicationModel
) -> Mapping[str, object]:
    return {} if record is None else project_document(record, account.project_id, central)
