"""OAuth clients."""

from collections.abc import Sequence
from dataclasses import replace

from msgspec import UNSET

from gatehouse.audit.events import Event
from gatehouse.oauth.client_document import FIELDS, open_document
from gatehouse.oauth.client_rules import check_client
from gatehouse.oauth.model import Client
from gatehouse.provision.document import Document
from gatehouse.provision.errors import Problems
from gatehouse.provision.model import Action, AddClient, Change, ChangeClient, Note, Scope, State
from gatehouse.provision.sections.client_entry import (
    ClientEntry,
    FoundClient,
    WantedClient,
    merge,
)
from gatehouse.provision.sections.client_secrets import secrets_document, settled
from gatehouse.provision.sections.section import Draft, Placed, Terms, Tools, few_at_a_time


class ClientSection:
    name = "clients"
    entry = ClientEntry

    def scope(self, entries: Sequence[Placed[ClientEntry]], *, prune: bool) -> Scope:  # noqa: ARG002 - all are read
        return Scope()

    async def draft(self, entries: Sequence[Placed[ClientEntry]], state: State, tools: Tools, terms: Terms) -> Draft:
        problems = Problems()
        found = identify(entries, state, tools.now, problems)
        if problems.lines:
            return Draft(problems=tuple(problems.lines))
        wanted = await few_at_a_time([settled(one, tools, terms, problems) for one in found])
        return Draft(changes=plan_clients(wanted, state, prune=terms.prune), problems=tuple(problems.lines))

    def documents(self, state: State, tools: Tools, *, secrets: bool) -> list[Document]:
        return [document(client, tools, secrets=secrets) for client in state.clients]


def identify(entries: Sequence[Placed[ClientEntry]], state: State, now: int, problems: Problems) -> list[FoundClient]:
    by_id = {client.client_id: client for client in state.clients}
    first: dict[str, str] = {}
    found = []
    for placed in entries:
        place, entry = placed.place, placed.entry
        before = by_id.get(entry.client_id)
        after = merge(entry, before, now)
        if first.setdefault(entry.client_id, place) != place:
            problems.add(place, f"is the same client as {first[entry.client_id]}")
        if entry.client_id in state.removed_client_ids:
            problems.add(f"{place}.client_id", f"{entry.client_id} was a removed client; choose another ID")
        if before is None and entry.name is UNSET:
            problems.add(place, "a new client needs a name")
        else:
            problems.checked(place, check_client, after, otherwise=None)
        found.append(FoundClient(place=place, entry=entry, before=before, after=after))
    return found


def plan_clients(wanted: Sequence[WantedClient], state: State, *, prune: bool) -> tuple[Change, ...]:
    """Pure: no secret is made here and nothing is read."""
    named = {one.after.client_id for one in wanted}
    surplus = [client for client in state.clients if client.client_id not in named] if prune else []
    changes = [change_of(one) for one in wanted if one.found.before is None or differing(one)]
    return (*map(removal, surplus), *changes)


def differing(one: WantedClient) -> tuple[str, ...]:
    """The names of what differs."""
    before, after = one.found.before, one.after
    names = [name for name in FIELDS if getattr(before, name) != getattr(after, name)]
    if before is not None and before.secrets != after.secrets:
        names.append("client_secret")
    return tuple(names)


def change_of(one: WantedClient) -> Change:
    after = one.after
    if one.found.before is None:
        return Change(
            action=Action.ADD,
            kind="client",
            name=after.client_id,
            act=AddClient(after),
            subject=after.client_id,
            notes=(Note(event=Event.CLIENT_CREATED, details={"profile": after.profile.value}),),
            generated_secret=one.generated_secret,
        )
    fields = differing(one)
    return Change(
        action=Action.CHANGE,
        kind="client",
        name=after.client_id,
        fields=fields,
        act=ChangeClient(after),
        subject=after.client_id,
        notes=(Note(event=Event.CLIENT_CHANGED, details={"fields": ", ".join(fields)}),),
        generated_secret=one.generated_secret,
    )


def removal(client: Client) -> Change:
    return Change(
        action=Action.REMOVE,
        kind="client",
        name=client.client_id,
        act=ChangeClient(replace(client, removed=True, secrets=())),
        subject=client.client_id,
        notes=(Note(event=Event.CLIENT_REMOVED),),
    )


def document(client: Client, tools: Tools, *, secrets: bool) -> Document:
    return {**open_document(client), **(secrets_document(client, tools) if secrets else {})}
