"""Everything that applying a file needs, with a store that lives as long as the process."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from gatehouse.accounts.errors import LoginTaken, UserChanged, UserIdTaken
from gatehouse.accounts.passwords import PasswordCost, Passwords
from gatehouse.audit.model import Record
from gatehouse.kernel.errors import BadInput
from gatehouse.keys.sealing import MasterKeys
from gatehouse.oauth.clients import Clients
from gatehouse.oauth.errors import ClientChanged
from gatehouse.provision.entries import Asked, read_entries
from gatehouse.provision.given import SecretSources
from gatehouse.provision.model import (
    Act,
    AddClient,
    AddUser,
    ChangeClient,
    ChangeUser,
    Plan,
    RemoveUser,
    Scope,
    State,
)
from gatehouse.provision.provisioning import Provisioning
from gatehouse.provision.sections.section import Terms
from gatehouse.provision.sections.table import SECTIONS
from gatehouse.provision.store import ProvisionStore
from tests.support.builders import NOW, ORIGIN, RECORDER
from tests.support.clock import MovableClock
from tests.support.keys import MASTER

PASSWORDS = Passwords(PasswordCost(memory_kib=8, time_cost=1, workers=1))
CLOCK = MovableClock(NOW)


class ProvisionsInMemory:
    """A ProvisionStore that keeps its promises."""

    def __init__(self, state: State | None = None) -> None:
        self.kept = state or State()
        self.records: list[Record] = []
        self.scopes: list[Scope] = []

    async def state(self, scope: Scope, now: int) -> State:
        del now
        self.scopes.append(scope)
        return self.kept

    async def carry_out(
        self, acts: Sequence[Act], records: Sequence[Record], *, setup_closed: Record | None, now: int
    ) -> None:
        self.kept = after(self.kept, acts, now)
        self.records += [*records, *([setup_closed] if setup_closed else [])]


def after(state: State, acts: Sequence[Act], now: int = NOW) -> State:
    """The state once the acts are done."""
    users = {user.user_id: user for user in state.users}
    clients = {client.client_id: client for client in state.clients}
    administrators = set(state.administrators)
    retired, removed = set(state.retired_user_ids), set(state.removed_client_ids)
    for act in acts:
        match act:
            case AddUser(user, administrator):
                if user.user_id in users or user.user_id in retired:
                    raise UserIdTaken
                if user.login_key in {other.login_key for other in users.values()}:
                    raise LoginTaken
                users[user.user_id] = user
                administrators |= {user.user_id} if administrator else set()
            case ChangeUser(user, administrator, ends_tokens):
                if users[user.user_id].version != user.version:
                    raise UserChanged
                rev = now * 1_000 if ends_tokens else user.rev
                users[user.user_id] = replace(user, version=user.version + 1, rev=rev)
                if administrator is not None:
                    administrators = administrators - {user.user_id} | ({user.user_id} if administrator else set())
            case RemoveUser(user):
                del users[user.user_id]
                administrators -= {user.user_id}
                retired.add(user.user_id)
            case AddClient(client):
                clients[client.client_id] = client
            case ChangeClient(client):
                if clients.pop(client.client_id).version != client.version:
                    raise ClientChanged
                if client.removed:
                    removed.add(client.client_id)
                else:
                    clients[client.client_id] = replace(client, version=client.version + 1)
            case _:
                assert_never(act)
    return State(
        users=tuple(users.values()),
        administrators=frozenset(administrators),
        retired_user_ids=frozenset(retired),
        clients=tuple(clients.values()),
        removed_client_ids=frozenset(removed),
    )


class Bench:
    """Applies documents to one store."""

    def __init__(self, store: ProvisionStore, *, masters: MasterKeys | None = None) -> None:
        self.masters = masters or MasterKeys(MASTER)
        self.clients = Clients(store=NoClients(), master_keys=self.masters, recorder=RECORDER, clock=CLOCK)
        self.provisioning = Provisioning(
            store=store,
            masters=self.masters,
            passwords=PASSWORDS,
            clients=self.clients,
            recorder=RECORDER,
            clock=CLOCK,
        )

    async def plan(self, **given: object) -> Plan:
        return await self.provisioning.plan(*split(given))

    async def apply(self, **given: object) -> Plan:
        return await self.provisioning.apply(*split(given), ORIGIN)

    async def export(self, *, secrets: bool = True) -> dict[str, object]:
        return await self.provisioning.export(secrets=secrets)


class NoClients:
    """What a Clients that only shapes secrets never asks."""

    create = client = clients = rotate_secret = None


def split(given: Mapping[str, object]) -> tuple[tuple[Asked, ...], Terms]:
    """Keyword arguments that name a section are the document; the others are the terms."""
    names = {section.name for section in SECTIONS}
    document = {name: value for name, value in given.items() if name in names}
    terms = {name: value for name, value in given.items() if name not in names}
    return read_entries(document, SECTIONS), some_terms(**terms)


def some_terms(*, environment: Mapping[str, str] | None = None, **rest: bool) -> Terms:
    return Terms(secrets=SecretSources(environment=environment or {}, read_file=no_file), **rest)


def no_file(path: str) -> str:
    raise BadInput(f"{path} cannot be read")


def a_bench(state: State | None = None) -> tuple[Bench, ProvisionsInMemory]:
    store = ProvisionsInMemory(state)
    return Bench(store), store


def lines(plan: Plan) -> list[str]:
    return [f"{change.action} {change.kind} {change.name} {','.join(change.fields)}".strip() for change in plan.changes]
