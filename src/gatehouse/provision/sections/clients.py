"""OAuth clients in files: entries, secrets, plan and export (R7)."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from gatehouse.audit.events import AuditEvent
from gatehouse.fields.derive import changed_names
from gatehouse.fields.secrets import SecretText
from gatehouse.images.loading import NewImage
from gatehouse.images.model import LOGO, client_logo_owner
from gatehouse.kernel.digests import constant_time_equal, sha256
from gatehouse.kernel.errors import BadInput
from gatehouse.kernel.ids import new_secret
from gatehouse.keys.model import Tampered, WrongMasterKey
from gatehouse.oauth.client_auth import STRONG_SECRET_LENGTH
from gatehouse.oauth.client_commands import client_secret_purpose, first_rev, new_stored_secret
from gatehouse.oauth.client_document import ClientPatch, apply_patch, client_document
from gatehouse.oauth.clients import can_never_authenticate, check_client, check_new_client
from gatehouse.oauth.errors import BadClient
from gatehouse.oauth.model import CLIENT_FIELDS, MAX_LIVE_SECRETS, Client, ClientProfile, ClientSecret, SecretKind
from gatehouse.oauth.workloads.checks import refuse_own_issuer
from gatehouse.provision.document import Document
from gatehouse.provision.file_secrets import FileSecret
from gatehouse.provision.model import (
    AddClient,
    AuditNote,
    Change,
    ChangeClient,
    Problems,
    RecordKind,
    StoredState,
    Write,
)
from gatehouse.provision.sections.images import exported_url, image_writes, merged_image_id, wanted_image
from gatehouse.provision.sections.references import collect_problems
from gatehouse.provision.sections.section import (
    Context,
    Edit,
    Located,
    Options,
    ResolvedSection,
    Section,
    SectionPlan,
    gather_in_batches,
    merge_field,
    reveal_secret,
    sealed_document,
)


class ClientFileEntry(ClientPatch, frozen=True, kw_only=True, forbid_unknown_fields=True):
    client_id: str
    client_secret: FileSecret | UnsetType | None = UNSET
    application_id: Annotated[int, Meta(ge=1, le=2**53)] | UnsetType | None = UNSET
    logo_uri: str | UnsetType | None = UNSET


# R9: files keep the default of before, the console and the command line do not.
ASSUMED_PROFILE: Final = "profile native, because the file names none; for standard OpenID Connect add profile: oidc"

CLIENT: Final[RecordKind[Client]] = RecordKind(
    "client", name_of=lambda client: client.client_id, subject_of=lambda client: client.client_id
)


class ClientEdit(Edit[ClientFileEntry, Client], frozen=True, kw_only=True):
    generated_secret: SecretText | None = None

    def with_secrets(self, secrets: tuple[ClientSecret, ...], generated: str | None = None) -> "ClientEdit":
        return replace(self, after=replace(self.after, secrets=secrets), generated_secret=generated)


def merge_client(entry: ClientFileEntry, before: Client | None, now: int) -> Client:
    base = before or Client(client_id=entry.client_id, name="", created_at=now, rev=first_rev(now))
    bound = replace(base, application_id=merge_field(entry.application_id, kept=base.application_id, cleared=None))
    return apply_patch(entry, bound, is_new=before is None)


# A client's secrets: from a file to storage, and back (R3).


MAX_LENGTH: Final = 1_024
SECRET_KINDS: Final = {
    ClientProfile.NATIVE: frozenset({SecretKind.SEALED}),
    ClientProfile.OIDC: frozenset({SecretKind.SHA256, SecretKind.ARGON2}),
}


class ExportedSecret(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One secret inside the sealed text of an export; of a native client in the clear, else its digest."""

    slot: int
    kind: SecretKind
    secret: bytes
    created_at: int
    expires_at: int

    def __repr__(self) -> str:
        return f"ExportedSecret(slot={self.slot})"


async def resolve_client_secrets(
    found: ClientEdit, context: Context, options: Options, problems: Problems
) -> ClientEdit:
    """Compare the secret with the stored one: an equal one is no change, even if it is hashed."""
    try:
        return await wanted_client(found, context, options)
    except BadInput as error:
        problems.add(f"{found.place}.client_secret", str(error))
        return found.with_secrets(())


async def wanted_client(found: ClientEdit, context: Context, options: Options) -> ClientEdit:
    file_secret = found.entry.client_secret
    if file_secret is UNSET:
        return keep_or_generate_secret(found, context)
    if file_secret is None:
        return found.with_secrets(())
    if found.after.public:
        raise BadClient("a public client has no secret")
    if found.after.workload_identities:
        raise BadClient("a client with workload identities has no secret")
    revealed = reveal_secret(file_secret, context, options, purpose=client_secret_purpose(found.after.client_id))
    if revealed.was_sealed:
        return found.with_secrets(import_secrets(found, revealed.text, context))
    return found.with_secrets(await replace_secret(found, revealed.text, context, options))


def keep_or_generate_secret(found: ClientEdit, context: Context) -> ClientEdit:
    before, after = found.before, found.after
    if after.public or after.workload_identities:
        return found.with_secrets(())
    if before is None or before.public or before.workload_identities:
        secret = new_secret()
        stored = new_stored_secret(after, secret, masters=context.masters, now=context.now)
        return found.with_secrets((stored,), secret)
    if before.secrets and before.profile is not after.profile:
        raise BadClient(f"must be set again: profile {after.profile} stores it in another form")
    return found.with_secrets(before.secrets)


async def replace_secret(
    found: ClientEdit, secret: str, context: Context, options: Options
) -> tuple[ClientSecret, ...]:
    before = found.before
    if before is not None and await is_newest(secret, before, found.after.profile, context):
        return before.secrets
    check_secret(secret, allow_weak=options.allow_weak)
    if found.after.profile is ClientProfile.OIDC and len(secret) < STRONG_SECRET_LENGTH:
        hashed = await context.passwords.hash(secret)
        return (ClientSecret(kind=SecretKind.ARGON2, secret=hashed.encode(), created_at=context.now),)
    return (new_stored_secret(found.after, secret, masters=context.masters, now=context.now),)


async def is_newest(secret: str, client: Client, profile: ClientProfile, context: Context) -> bool:
    """True for the secret in force; the one before it, still good for a while, is not what a file should name."""
    live = live_secrets(client.secrets, context.now)
    if not live or live[-1].kind not in SECRET_KINDS[profile]:
        return False
    newest = live[-1]
    if newest.kind is SecretKind.ARGON2:
        return await context.passwords.matches(secret, newest.secret.decode())
    if newest.kind is SecretKind.SHA256:
        return constant_time_equal(sha256(secret), newest.secret)
    opened = context.masters.try_open(newest.secret, purpose=client_secret_purpose(client.client_id))
    return opened is not None and constant_time_equal(secret, opened)


def check_secret(secret: str, *, allow_weak: bool) -> None:
    if len(secret) > MAX_LENGTH:
        raise BadClient(f"is longer than {MAX_LENGTH} characters")
    if len(secret) < STRONG_SECRET_LENGTH and not allow_weak:
        raise BadClient(f"is shorter than {STRONG_SECRET_LENGTH} characters; use --allow-weak to accept it")


def live_secrets(secrets: Sequence[ClientSecret], now: int) -> tuple[ClientSecret, ...]:
    return tuple(secret for secret in secrets if not 0 < secret.expires_at <= now)


def open_secret(secret: ClientSecret, client: Client, context: Context) -> bytes:
    if secret.kind is not SecretKind.SEALED:
        return secret.secret
    return context.masters.open(secret.secret, purpose=client_secret_purpose(client.client_id))


def exported_secrets(client: Client, context: Context) -> list[ExportedSecret]:
    """Every live secret of the client, as an export contains it."""
    return [
        ExportedSecret(
            slot=secret.slot,
            kind=secret.kind,
            secret=open_secret(secret, client, context),
            created_at=secret.created_at,
            expires_at=secret.expires_at,
        )
        for secret in live_secrets(client.secrets, context.now)
    ]


def import_secrets(found: ClientEdit, text: str, context: Context) -> tuple[ClientSecret, ...]:
    """The secrets of an export; the stored ones if they are the same."""
    arriving = [
        one for one in msgspec.json.decode(text, type=list[ExportedSecret]) if not 0 < one.expires_at <= context.now
    ]
    if len(arriving) > MAX_LIVE_SECRETS or any(one.kind not in SECRET_KINDS[found.after.profile] for one in arriving):
        raise BadClient(f"was exported from a client with another profile than {found.after.profile}")
    before = found.before
    if before is not None and has_same_secrets(before, arriving, context):
        return before.secrets
    return tuple(stored_secret(one, found.after, context) for one in arriving)


def has_same_secrets(client: Client, arriving: Sequence[ExportedSecret], context: Context) -> bool:
    """False also if one is damaged: the file replaces it."""
    try:
        return exported_secrets(client, context) == arriving
    except (Tampered, WrongMasterKey):
        return False


def stored_secret(one: ExportedSecret, client: Client, context: Context) -> ClientSecret:
    native = one.kind is SecretKind.SEALED
    stored = (
        context.masters.seal(one.secret, purpose=client_secret_purpose(client.client_id)) if native else one.secret
    )
    return ClientSecret(
        slot=one.slot, kind=one.kind, secret=stored, created_at=one.created_at, expires_at=one.expires_at
    )


def secrets_document(client: Client, context: Context) -> Document:
    """The secrets as an export writes them, all in one text; null says that there is none."""
    if client.public:
        return {}
    arriving = exported_secrets(client, context)
    if not arriving:
        return {"client_secret": None}
    text = msgspec.json.encode(arriving).decode()
    return {"client_secret": sealed_document(text, context, purpose=client_secret_purpose(client.client_id))}


# OAuth clients.


async def resolve_client_entries(
    entries: Sequence[Located[ClientFileEntry]], state: StoredState, context: Context, options: Options
) -> ResolvedSection:
    problems = Problems()
    clients = resolve_clients(entries, state, context.now, problems)
    refuse_own = partial(refuse_own_issuer, base_url=context.reserved.base_url)
    for one in clients:
        problems.check_value(one.place, refuse_own, one.after, otherwise=None)
    if problems.lines:
        return ResolvedSection(clients, tuple(problems.lines), is_plannable=False)
    clients = [await load_client_logo(one, state, context, problems) for one in clients]
    wanted = await gather_in_batches(
        [resolve_client_secrets(one, context, options, problems) for one in clients], context.on_progress
    )
    return ResolvedSection(wanted, tuple(problems.lines))


def plan_client_entries(
    entries: Sequence[ClientEdit], state: StoredState, context: Context, options: Options
) -> SectionPlan:
    return SectionPlan(
        changes=plan_clients(entries, state, prune=options.prune),
        warnings=tuple(
            f"{one.place}: {one.after.client_id} has neither a secret nor keys and can never authenticate"
            for one in entries
            if can_never_authenticate(one.after, context.now)
        ),
    )


def resolve_clients(
    entries: Sequence[Located[ClientFileEntry]], state: StoredState, now: int, problems: Problems
) -> list[ClientEdit]:
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
            check = check_new_client if before is None else check_client
            problems.check_value(place, check, after, otherwise=None)
        found.append(ClientEdit(place=place, entry=entry, before=before, after=after))
    return found


async def load_client_logo(found: ClientEdit, state: StoredState, context: Context, problems: Problems) -> ClientEdit:
    logo: NewImage = UNSET
    with collect_problems(problems):
        logo = await wanted_image(
            found.entry.logo_uri,
            LOGO,
            state.images.get(client_logo_owner(found.after.client_id)),
            context,
            image_id=found.after.logo,
            place=f"{found.place}.logo_uri",
        )
    after = replace(found.after, logo=merged_image_id(logo, found.after.logo))
    return replace(found, after=after, image=logo)


def plan_clients(wanted: Sequence[ClientEdit], state: StoredState, *, prune: bool) -> tuple[Change, ...]:
    """Pure: no secret is made here and nothing is read."""
    named = {one.after.client_id for one in wanted}
    surplus = [client for client in state.clients if client.client_id not in named] if prune else []
    return (*map(client_removal, surplus), *filter(None, map(client_change, wanted)))


def changed_client_fields(wanted: ClientEdit) -> tuple[str, ...]:
    """The names of what differs."""
    before, after = wanted.before, wanted.after
    names = list(changed_names(before, after, CLIENT_FIELDS))
    if before is not None and before.secrets != after.secrets:
        names.append("client_secret")
    if before is not None and before.logo != after.logo:
        names.append("logo")
    return tuple(names)


def client_change(one: ClientEdit) -> Change | None:
    after, secret = one.after, one.generated_secret
    logo = image_writes(client_logo_owner(after.client_id), one.image)
    if one.before is None:
        created = AuditNote(event=AuditEvent.CLIENT_CREATED, details={"profile": after.profile.value})
        assumed = "" if one.entry.profile else ASSUMED_PROFILE
        return CLIENT.addition(after, AddClient(after), *logo, notes=[created], secret=secret, assumed=assumed)
    fields = changed_client_fields(one)
    changed = AuditNote(event=AuditEvent.CLIENT_CHANGED, details={"fields": ", ".join(fields)})
    writes: list[Write] = [ChangeClient(after), *logo] if fields or logo else []
    return CLIENT.change(after, fields, writes, notes=[changed], secret=secret)


def client_removal(client: Client) -> Change:
    gone = replace(client, removed=True, secrets=(), logo="")
    return CLIENT.removal(client, ChangeClient(gone), AuditNote(event=AuditEvent.CLIENT_REMOVED))


def client_documents(state: StoredState, context: Context) -> list[Document]:
    return [client_to_document(client, state, context) for client in state.clients]


def client_to_document(client: Client, state: StoredState, context: Context) -> Document:
    logo = exported_url(client_logo_owner(client.client_id), state)
    hidden = secrets_document(client, context) if context.secrets else {}
    return {**client_document(client), "logo_uri": logo, **hidden}


CLIENTS: Final = Section(
    name="clients",
    entry=ClientFileEntry,
    resolve=resolve_client_entries,
    plan=plan_client_entries,
    documents=client_documents,
)
