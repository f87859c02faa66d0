"""Service accounts, and the JWT of a new one, which is printed once (R1)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from secrets import token_hex
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import Details
from gatehouse.fields.derive import changed_names, entry_values
from gatehouse.kernel.ids import new_user_id
from gatehouse.permissions.authentication.application_keys import parse_public_key
from gatehouse.permissions.authentication.service_jwts import DAY_SECONDS, JTI_BYTES
from gatehouse.permissions.commands.service_accounts import read_name, read_ranges, refuse_owner
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.documents.records import IN_PROJECT, parse_project
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.facts import ProjectModel, ScopeHoldings
from gatehouse.permissions.model.rules import Scope
from gatehouse.permissions.model.service_account import CHANGEABLE_ACCOUNT_FIELDS, ServiceAccount
from gatehouse.provision.document import Document
from gatehouse.provision.model import (
    AddServiceAccount,
    AuditNote,
    Change,
    ChangeRecords,
    ChangeServiceAccount,
    PermissionState,
    ReadScope,
    RecordKind,
    StoredState,
)
from gatehouse.provision.sections.memberships import holdings_document
from gatehouse.provision.sections.references import (
    EntryPlanner,
    References,
    central_application,
    holdings_in_project,
    refusals_at,
    refuse_invalid_record,
)
from gatehouse.provision.sections.section import Context, Located, Options, PlanStage, Section
from gatehouse.tokens.claims import ServiceAccountClaims
from gatehouse.tokens.signer import Signer


class ServiceAccountTokens(Struct, frozen=True, kw_only=True):
    signer: Signer
    issuer: str
    days: Callable[[], int]

    async def issue(self, account: ServiceAccount) -> str:
        """A JWT with the id and jti of the account, valid once that is stored."""
        claims = ServiceAccountClaims(
            iss=self.issuer,
            iat=account.created_at,
            exp=account.created_at + self.days() * DAY_SECONDS,
            uid=account.user_id,
            sub=account.user_id,
            nick=account.name,
            rev=0,
            jti=account.jti,
            pub_key=account.public_key or None,
            fip=account.ip_ranges or None,
        )
        return await self.signer.sign(claims)


# Service accounts, found by project and name; a later stage plans what they hold.


MADE_BY_FILE: Final = "apply"  # instead of the id of a creator

Tree = dict[str, Any] | UnsetType | None

ACCOUNT: Final[RecordKind[ServiceAccount]] = RecordKind(
    "service account",
    name_of=lambda account: f"{account.name} of {account.project_id}",
    subject_of=lambda account: account.user_id,
)


class ServiceAccountFileEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    project_id: str
    name: str
    user_id: str | UnsetType = UNSET
    comment: str | UnsetType | None = UNSET
    ip_ranges: tuple[Any, ...] | UnsetType | None = UNSET
    public_key: str | UnsetType | None = UNSET
    revoked: bool | UnsetType = UNSET
    roles: tuple[Any, ...] | UnsetType | None = UNSET  # this and the following: what it holds in the project
    private_data: Tree = UNSET
    public_data: Tree = UNSET
    applications: Tree = UNSET
    services: Tree = UNSET
    groups: Tree = UNSET


def account_scope(entries: Sequence[ServiceAccountFileEntry]) -> ReadScope:
    return ReadScope(
        permissions=True,
        user_ids=frozenset(entry.user_id for entry in entries if entry.user_id is not UNSET),
        member_projects=frozenset(entry.project_id for entry in entries),
    )


def account_documents(state: StoredState, _: Context) -> list[Document]:
    accounts = sorted(state.permissions.service_accounts.values(), key=lambda one: (one.project_id, one.name))
    return [
        account_document(account, state)
        for account in accounts
        if state.permissions.has_scope(Scope(account.project_id))
    ]


class ServiceAccountPlanner(EntryPlanner[ServiceAccountFileEntry]):
    def __init__(self, state: StoredState, context: Context, options: Options) -> None:
        super().__init__(state, context, options)
        self._spent = {user.user_id for user in state.users} | {
            located.entry.user_id
            for section in ("users", "service_accounts")
            for located in context.file.entries_of(section)
            if located.entry.user_id is not UNSET
        }

    def plan_entry(self, located: Located[ServiceAccountFileEntry]) -> Change | None:
        entry, place = located.entry, located.place
        project = self.references().project(entry.project_id, f"{place}.project_id")
        before = stored_account(entry, project, self._state.permissions)
        self.refuse_second_entry(account_key(project.project.project_id, entry.name), "service account", place)
        if before is not None and entry.user_id not in (UNSET, before.user_id):
            raise Malformed(f"{place}.user_id: the account has the ID {before.user_id}")
        base = before or self._new_account(entry, project, place)
        return account_change(merge_account(entry, base, place), before)

    def removals(self) -> Iterator[Change]:
        for account in self._permissions.service_accounts.values():
            is_named = account_key(account.project_id, account.name) in self._places
            if not is_named and not account.revoked and self._permissions.has_scope(Scope(account.project_id)):
                yield account_removal(account)

    def _new_account(self, entry: ServiceAccountFileEntry, project: ProjectModel, place: str) -> ServiceAccount:
        return ServiceAccount(
            user_id=self._user_id(entry, place),
            project_id=project.project.project_id,
            name=read_name(entry.name, f"{place}.name"),
            created_by=MADE_BY_FILE,
            created_at=self._context.now,
            jti=token_hex(JTI_BYTES),
        )

    def _user_id(self, entry: ServiceAccountFileEntry, place: str) -> str:
        if entry.user_id is UNSET:
            user_id = new_user_id()
            while user_id in self._spent:
                user_id = new_user_id()
            self._spent.add(user_id)
            return user_id
        given = grammar.check_user_id(entry.user_id, f"{place}.user_id")
        taken = (
            given in {user.user_id for user in self._state.users} or given in self._state.permissions.service_accounts
        )
        if taken or given in self._state.retired_user_ids:
            raise Malformed(f"{place}.user_id: {given} belongs or belonged to another account")
        return given


def account_key(project_id: str, name: str) -> str:
    return f"{project_id}/{name}"


def stored_account(
    entry: ServiceAccountFileEntry, project: ProjectModel, permissions: PermissionState
) -> ServiceAccount | None:
    key = (project.project.project_id, entry.name)
    return next(
        (
            service_account
            for service_account in permissions.service_accounts.values()
            if (service_account.project_id, service_account.name) == key
        ),
        None,
    )


def merge_account(entry: ServiceAccountFileEntry, base: ServiceAccount, place: str) -> ServiceAccount:
    """The account with the fields of the entry. Raises Malformed."""
    after = base
    if entry.comment is not UNSET:
        after = replace(after, comment=grammar.check_comment(entry.comment or "", f"{place}.comment"))
    if entry.ip_ranges is not UNSET:
        after = replace(after, ip_ranges=read_ranges(entry.ip_ranges or (), f"{place}.ip_ranges"))
    if entry.public_key is not UNSET:
        text = entry.public_key
        key = parse_public_key(text, f"{place}.public_key") if text else ""
        after = replace(after, public_key=key)
    if entry.revoked is not UNSET:
        if base.revoked and not entry.revoked:
            raise Malformed(f"{place}.revoked: a revoked account cannot be restored; choose another name")
        after = replace(after, revoked=entry.revoked)
    return after


def account_change(after: ServiceAccount, before: ServiceAccount | None) -> Change | None:
    about = account_details(after)
    if before is None:
        made = AuditNote(event=AuditEvent.SERVICE_ACCOUNT_MADE, details=about)
        return ACCOUNT.addition(after, AddServiceAccount(after), notes=[made])
    if after == before:
        return None
    ends = after.revoked and not before.revoked
    event = AuditEvent.SERVICE_ACCOUNT_REVOKED if ends else AuditEvent.SERVICE_ACCOUNT_CHANGED
    fields = changed_names(before, after, CHANGEABLE_ACCOUNT_FIELDS)
    note = AuditNote(event=event, details=about)
    return ACCOUNT.change(after, fields, [ChangeServiceAccount(before, after)], notes=[note])


def account_removal(account: ServiceAccount) -> Change:
    """A removed account is revoked; its name and id are never reused."""
    note = AuditNote(event=AuditEvent.SERVICE_ACCOUNT_REVOKED, details=account_details(account))
    return ACCOUNT.removal(account, ChangeServiceAccount(account, replace(account, revoked=True)), note)


def account_details(account: ServiceAccount) -> dict[str, str]:
    return {"project_id": account.project_id, "name": account.name}


def account_document(account: ServiceAccount, state: StoredState) -> Document:
    record = state.permissions.record(CENTRAL_APPLICATION, account.user_id)
    return {
        "project_id": account.project_id,
        "name": account.name,
        "user_id": account.user_id,
        **entry_values(account, CHANGEABLE_ACCOUNT_FIELDS),
        "ip_ranges": list(account.ip_ranges),
        "roles": [],
        **holdings_document(record, account.project_id, state),
    }


# What service accounts hold in their project, which may refer to anything in the file.


class ServiceAccountRightsPlanner(EntryPlanner[ServiceAccountFileEntry]):
    """What service accounts hold in their project: as in a membership, but never project_owner (R1)."""

    def plan_entry(self, located: Located[ServiceAccountFileEntry]) -> Change | None:
        return rights_change(located, self._state, self.references())


def rights_change(
    located: Located[ServiceAccountFileEntry], state: StoredState, references: References
) -> Change | None:
    given = {name: value for name in IN_PROJECT if (value := getattr(located.entry, name)) is not UNSET}
    project = references.project(located.entry.project_id, f"{located.place}.project_id")
    account = stored_account(located.entry, project, state.permissions)
    if not given or account is None:
        return None
    before = state.permissions.record(CENTRAL_APPLICATION, account.user_id)
    scopes = wanted_scopes(given, account, state, references, located.place)
    after = replace(before, scopes={scope: held for scope, held in before.scopes.items() if scope not in scopes})
    for scope, held in scopes.items():
        after = after.with_holdings(scope, held)
    if after == before:
        return None
    refuse_invalid_record(central_application(state), before, after, located.place)
    references.refuse_unknown_resources(
        (scope for scope, held in after.scopes.items() if before.scopes.get(scope) != held), located.place
    )
    details: Details = {"application_id": CENTRAL_APPLICATION, **account_details(account)}
    note = AuditNote(event=AuditEvent.USER_SCHEMA_SAVED, details=details)
    return ACCOUNT.change(account, given, [ChangeRecords((before,), (after,))], notes=[note])


def wanted_scopes(
    given: Mapping[str, Any], account: ServiceAccount, state: StoredState, references: References, place: str
) -> dict[Scope, ScopeHoldings]:
    """All scopes of the project in which it holds or held something; a field that is absent stays."""
    record = state.permissions.record(CENTRAL_APPLICATION, account.user_id)
    kept = holdings_document(record, account.project_id, state)
    members = {name: value for name, value in {**kept, **given}.items() if value is not None}
    resolved = references.with_group_ids(members, account.project_id, place)
    scopes = parse_project(resolved, account.project_id, place=place)
    with refusals_at(f"{place}.roles"):
        refuse_owner(scopes)
    gone = {
        scope: ScopeHoldings()
        for scope in holdings_in_project(record, account.project_id)
        if state.permissions.has_scope(scope)
    }
    return {**gone, **scopes}


SERVICE_ACCOUNTS: Final = Section(
    name="service_accounts",
    entry=ServiceAccountFileEntry,
    scope=account_scope,
    plan=ServiceAccountPlanner.plan,
    documents=account_documents,
)
SERVICE_ACCOUNT_RIGHTS: Final = PlanStage(name=SERVICE_ACCOUNTS.name, plan=ServiceAccountRightsPlanner.plan)
