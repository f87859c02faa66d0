"""OAuth clients."""

from collections.abc import Sequence
from dataclasses import replace

from msgspec import UNSET

from gatehouse.audit.events import AuditEvent
from gatehouse.oauth.client_document import CLIENT_FIELDS, client_document
from gatehouse.oauth.client_rules import check_client
from gatehouse.oauth.model import Client
from gatehouse.provision.document import Document
from gatehouse.provision.errors import Problems
from gatehouse.provision.model import Action, AddClient, AuditNote, Change, ChangeClient, ReadScope, StoredState
from gatehouse.provision.sections.client_entry import (
    ClientFileEntry,
    FoundClient,
    WantedClient,
    merge_client,
)
from gatehouse.provision.sections.client_secrets import resolve_client_secrets, secrets_document
from gatehouse.provision.sections.section import Context, Located, Options, SectionPlan, gather_in_batches


class ClientSection:
    name = "clients"
    entry = ClientFileEntry

    def read_scope(self, entries: Sequence[Located[ClientFileEntry]], *, prune: bool) -> ReadScope:  # noqa: ARG002 - all are read
        return ReadScope()

    async def plan(
        self, entries: Sequence[Located[ClientFileEntry]], state: StoredState, context: Context, options: Options
    ) -> SectionPlan:
        problems = Problems()
        found = resolve_clients(entries, state, context.now, problems)
        if problems.lines:
            return SectionPlan(problems=tuple(problems.lines))
        wanted = await gather_in_batches([resolve_client_secrets(one, context, options, problems) for one in found])
        return SectionPlan(changes=plan_clients(wanted, state, prune=options.prune), problems=tuple(problems.lines))

    def export_documents(self, state: StoredState, context: Context, *, secrets: bool) -> list[Document]:
        return [client_to_document(client, context, secrets=secrets) for client in state.clients]


def resolve_clients(
    entries: Sequence[Located[ClientFileEntry]], state: StoredState, now: int, problems: Problems
) -> list[FoundClient]:
    by_id = {client.client_id: client for client in state.clients}
    first: dict[str, str] = {}
    found = []
    for placed in entries:
        place, entry = placed.place, placed.entry
        before = by_id.get(entry.client_id)
        after = merge_client(entry, before, now)
        if first.setdefault(entry.client_id, place) != place:
            problems.add(place, f"is the same client as {first[entry.client_id]}")
        if entry.client_id in state.removed_client_ids:
            problems.add(f"{place}.client_id", f"{entry.client_id} was a removed client; choose another ID")
        if before is None and entry.name is UNSET:
            problems.add(place, "a new client needs a name")
        else:
            problems.check_value(place, check_client, after, otherwise=None)
        found.append(FoundClient(place=place, entry=entry, before=before, after=after))
    return found


def plan_clients(wanted: Sequence[WantedClient], state: StoredState, *, prune: bool) -> tuple[Change, ...]:
    """Pure: no secret is made here and nothing is read."""
    named = {one.after.client_id for one in wanted}
    surplus = [client for client in state.clients if client.client_id not in named] if prune else []
    changes = [client_change(one) for one in wanted if one.found.before is None or changed_client_fields(one)]
    return (*map(client_removal, surplus), *changes)


def changed_client_fields(one: WantedClient) -> tuple[str, ...]:
    """The names of what differs."""
    before, after = one.found.before, one.after
    names = [name for name in CLIENT_FIELDS if getattr(before, name) != getattr(after, name)]
    if before is not None and before.secrets != after.secrets:
        names.append("client_secret")
    return tuple(names)


def client_change(one: WantedClient) -> Change:
    after = one.after
    if one.found.before is None:
        return Change(
            action=Action.ADD,
            kind="client",
            name=after.client_id,
            write=AddClient(after),
            subject=after.client_id,
            notes=(AuditNote(event=AuditEvent.CLIENT_CREATED, details={"profile": after.profile.value}),),
            generated_secret=one.generated_secret,
        )
    fields = changed_client_fields(one)
    return Change(
        action=Action.CHANGE,
        kind="client",
        name=after.client_id,
        fields=fields,
        write=ChangeClient(after),
        subject=after.client_id,
        notes=(AuditNote(event=AuditEvent.CLIENT_CHANGED, details={"fields": ", ".join(fields)}),),
        generated_secret=one.generated_secret,
    )


def client_removal(client: Client) -> Change:
    return Change(
        action=Action.REMOVE,
        kind="client",
        name=client.client_id,
        write=ChangeClient(replace(client, removed=True, secrets=())),
        subject=client.client_id,
        notes=(AuditNote(event=AuditEvent.CLIENT_REMOVED),),
    )


def client_to_document(client: Client, context: Context, *, secrets: bool) -> Document:
    return {**client_document(client), **(secrets_document(client, context) if secrets else {})}
