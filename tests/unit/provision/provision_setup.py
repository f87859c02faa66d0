"""Everything that applying a file needs, with a store in memory."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from msgspec.structs import replace

from gatehouse.accounts.errors import LoginTaken, UserChanged, UserIdTaken
from gatehouse.accounts.model import User
from gatehouse.accounts.password_rules import PasswordRules
from gatehouse.accounts.passwords import PasswordCost, Passwords
from gatehouse.audit.model import AuditRecord
from gatehouse.kernel.errors import BadInput
from gatehouse.keys.sealing import MasterKeys
from gatehouse.oauth.client_commands import Clients
from gatehouse.oauth.errors import ClientChanged
from gatehouse.oauth.model import Client
from gatehouse.provision.file_secrets import SecretResolver
from gatehouse.provision.model import (
    EVERYTHING,
    Action,
    AddClient,
    AddUser,
    Change,
    ChangeClient,
    ChangeUser,
    FileRun,
    OnProgress,
    Plan,
    PlanAudit,
    ProvisionStore,
    ReadScope,
    RemoveUser,
    StoredState,
    Write,
    ignore_progress,
)
from gatehouse.provision.plan import SECTIONS, Provisioning
from gatehouse.provision.sections.section import Options, SectionEntries, read_entries
from tests.support.builders import NOW, ORIGIN, RECORDER
from tests.support.clock import MovableClock
from tests.support.keys import MASTER

PASSWORDS = Passwords(PasswordCost(memory_kib=8, time_cost=1, workers=1))
CLOCK = MovableClock(NOW)


class ProvisionsInMemory:
    """A ProvisionStore in memory."""

    def __init__(self, state: StoredState | None = None) -> None:
        self.stored = state or StoredState()
        self.records: list[AuditRecord] = []
        self.scopes: list[ReadScope] = []

    async def read_state(self, scope: ReadScope, now: int) -> StoredState:
        del now
        self.scopes.append(scope)
        return self.stored

    def as_dry_run(self) -> "ProvisionsInMemory":
        return ProvisionsInMemory(self.stored)

    async def run_file(
        self,
        start: Callable[[StoredState], FileRun],
        scope: ReadScope,
        audit: Callable[[Plan], PlanAudit],
        *,
        by: str,
        now: int,
        on_progress: OnProgress,
    ) -> Plan:
        del scope, by
        after, run = self.stored, start(self.stored)
        try:
            writes = next(run)
            while True:
                after = state_after_file(after, writes, now)
                on_progress(len(writes))
                writes = run.send(after)
        except StopIteration as end:
            plan: Plan = end.value
        if plan.changes:
            audited = audit(plan)
            self.stored = after
            self.records += [*audited.records, *([audited.setup_closed] if audited.setup_closed else [])]
        return plan


def state_after_file(state: StoredState, acts: Sequence[Write], now: int = NOW) -> StoredState:
    """The state after the acts."""
    after = StateInMemory(state)
    for act in acts:
        after.apply_act(act, now)
    return after.state()


class StateInMemory:
    def __init__(self, state: StoredState) -> None:
        self._users = {user.user_id: user for user in state.users}
        self._administrators = set(state.administrators)
        self._retired = set(state.retired_user_ids)
        self._clients = {client.client_id: client for client in state.clients}
        self._removed = set(state.removed_client_ids)
        self._permissions = state.permissions

    def state(self) -> StoredState:
        return StoredState(
            users=tuple(self._users.values()),
            administrators=frozenset(self._administrators),
            retired_user_ids=frozenset(self._retired),
            clients=tuple(self._clients.values()),
            removed_client_ids=frozenset(self._removed),
            permissions=self._permissions,
        )

    def apply_act(self, act: Write, now: int) -> None:
        match act:
            case AddUser(user, administrator):
                self._add_user(user)
                self._give_role(user, holds=administrator)
            case ChangeUser(user, administrator, ends_tokens):
                self._change_user(user, rev=now * 1_000 if ends_tokens else user.rev)
                self._give_role(user, holds=administrator)
            case RemoveUser(user):
                del self._users[user.user_id]
                self._retired.add(user.user_id)
                self._give_role(user, holds=False)
            case AddClient(client):
                self._clients[client.client_id] = client
            case ChangeClient(client):
                self._change_client(client)
            case _:
                raise NotImplementedError(act)  # tests of permissions run on a database

    def _add_user(self, user: User) -> None:
        if user.user_id in self._users or user.user_id in self._retired:
            raise UserIdTaken
        if user.login_key in {other.login_key for other in self._users.values()}:
            raise LoginTaken
        self._users[user.user_id] = user

    def _change_user(self, user: User, rev: int) -> None:
        if self._users[user.user_id].version != user.version:
            raise UserChanged
        self._users[user.user_id] = replace(user, version=user.version + 1, rev=rev)

    def _give_role(self, user: User, *, holds: bool | None) -> None:
        if holds is not None:
            self._administrators.discard(user.user_id)
        if holds:
            self._administrators.add(user.user_id)

    def _change_client(self, client: Client) -> None:
        if self._clients.pop(client.client_id).version != client.version:
            raise ClientChanged
        if client.removed:
            self._removed.add(client.client_id)
        else:
            self._clients[client.client_id] = replace(client, version=client.version + 1)


class ProvisionSetup:
    """Applies documents to one store."""

    def __init__(self, store: ProvisionStore, *, masters: MasterKeys | None = None) -> None:
        self.masters = masters or MasterKeys(MASTER)
        self.clients = Clients(
            store=NoClients(),
            grants=NoGrants(),
            master_keys=self.masters,
            recorder=RECORDER,
            clock=CLOCK,
            issuer="https://auth.example.com",
        )
        self._store = store
        self.progress: list[tuple[str, int, int]] = []  # what was shown: the work, what was reached, the total
        self.provisioning = Provisioning(
            store=store,
            masters=self.masters,
            passwords=PASSWORDS,
            rules=PasswordRules(),
            recorder=RECORDER,
            clock=CLOCK,
            show_progress=self._show_progress,
        )

    @contextmanager
    def _show_progress(self, work: str, total: int) -> Iterator[OnProgress]:
        yield lambda reached: self.progress.append((work, reached, total))

    async def state(self) -> StoredState:
        return await self._store.read_state(EVERYTHING, NOW)

    async def plan(self, **arguments: object) -> Plan:
        return await self.provisioning.dry_run(*split_arguments(arguments), ORIGIN)

    async def apply(self, **arguments: object) -> Plan:
        return await self.provisioning.apply(*split_arguments(arguments), ORIGIN)

    async def export(self, *, secrets: bool = True) -> dict[str, list[dict[str, object]]]:
        return await self.provisioning.export(secrets=secrets)


class NoClients:
    """The methods that a Clients which only makes secrets never calls."""

    create_client = client = clients = rotate_secret = remove_client = None


class NoGrants:
    create_grant = find_grant_by_code = find_live_grant = redeem_code = count_code_failure = rotate = revoke_grant = (
        revoke_client_tokens
    ) = spend_assertion = None


def split_arguments(arguments: Mapping[str, object]) -> tuple[tuple[SectionEntries, ...], Options]:
    """Split keyword arguments into sections of the document and options."""
    names = {section.name for section in SECTIONS}
    document = {name: value for name, value in arguments.items() if name in names}
    options = {name: value for name, value in arguments.items() if name not in names}
    return read_entries(document, SECTIONS), some_options(**options)


def some_options(*, environment: Mapping[str, str] | None = None, **rest: bool) -> Options:
    return Options(secrets=SecretResolver(environment=environment or {}, read_file=no_file), **rest)


def no_file(path: str) -> str:
    raise BadInput(f"{path} cannot be read")


def provision_setup(state: StoredState | None = None) -> tuple[ProvisionSetup, ProvisionsInMemory]:
    store = ProvisionsInMemory(state)
    return ProvisionSetup(store), store


def plan_lines(plan: Plan) -> list[str]:
    return [
        f"{change.action} {change.kind} {change.name} {','.join(change.fields)}".strip() for change in plan.changes
    ]


def run_writes(writes: Sequence[Write], state: StoredState) -> FileRun:
    """A run of one section that makes these writes."""
    del state
    yield writes
    changes = [Change(action=Action.CHANGE, kind="", name="", writes=(one,), subject="", notes=()) for one in writes]
    return Plan(changes=tuple(changes))


async def write_all(store: ProvisionStore, *writes: Write, records: Sequence[AuditRecord] = ()) -> None:
    await store.run_file(
        partial(run_writes, writes),
        ReadScope(),
        lambda _: PlanAudit(records=records),
        by="test",
        now=NOW,
        on_progress=ignore_progress,
    )
