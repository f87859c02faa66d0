"""POST /api/permissions/user/import: accounts of other systems (R10)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.importing.model import EmailState, ImportFormat
from gatehouse.admin.access_invitations import NO_ACCESS
from gatehouse.admin.bulk_invitations import BulkInvitations
from gatehouse.admin.people_import import ImportResult, PeopleImport
from gatehouse.fields.derive import copy_as
from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.authentication.credentials import DEFAULT_POLICY
from gatehouse.permissions.rights.actor import Actor
from gatehouse.web.api.permissions.authentication import CredentialFields, actor_of, credentials_of
from gatehouse.web.api.permissions.envelope import data_response, permission_endpoint
from gatehouse.web.http.parse import read_json
from gatehouse.web.http.routing import SCHEMA_BODY_LIMIT, Endpoint


class UserImportData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    lines: list[str] = msgspec.field(default_factory=list)  # of the file; of CSV the header first
    format: Literal["csv", "jsonl"] = "csv"
    emails: Literal["", "verified", "unverified"] = ""  # needed if the lines have no email_verified
    import_id: str = ""  # to continue an import with other lines; the default is made from the lines
    invite: bool = False  # of import: also email those without a password a link to set one, as `invite` does
    after: str = ""  # of invite: the `after` of the answer before


class UserImportRequest(CredentialFields, frozen=True, kw_only=True):
    action: Literal["plan", "import", "invite"]
    data: UserImportData


class RefusedRowEntry(msgspec.Struct, frozen=True, kw_only=True):
    row: int  # its line
    account: str
    reason: str


class ImportResultEntry(msgspec.Struct, frozen=True, kw_only=True):
    import_id: str
    rows: int
    imported: int  # of a plan: what would be
    known: int  # imported by an earlier call
    refused: int
    without_password: int
    totp: int
    identities: int
    left_out: int  # imported accounts without one of their identities, which are among refused_rows
    unverified: int  # with an unverified email
    loses_methods: int  # of them with a second factor or identity, which the first proof by email ends
    hashes: Mapping[str, int]
    refused_rows: Sequence[RefusedRowEntry]  # at most 1,000
    invitations: "ImportInvitationsEntry | UnsetType" = UNSET  # of an import with `invite`


class NotInvitedEntry(msgspec.Struct, frozen=True, kw_only=True):
    user_id: str
    reason: str


class ImportInvitationsEntry(msgspec.Struct, frozen=True, kw_only=True):
    """At most 500 of an import: `invite` with `after` goes on."""

    import_id: str
    invited: int
    not_invited: Sequence[NotInvitedEntry]
    after: str  # empty if there are no more


class UserImportEndpoint(Struct, kw_only=True, eq=False):
    people: PeopleImport
    load_invitations: Callable[[], BulkInvitations]
    authenticator: Authenticator

    async def handle(self, request: Request) -> Response:
        body = await read_json(request, UserImportRequest)
        authenticated = await self.authenticator.authenticate(credentials_of(request, body), DEFAULT_POLICY)
        actor = actor_of(request, authenticated)
        if body.action == "invite":
            return data_response(await self._invite(actor, body.data.import_id, body.data.after))
        result = await self.people.run(
            actor,
            "\n".join(body.data.lines).encode(),
            ImportFormat(body.data.format),
            dry_run=body.action == "plan",
            import_id=body.data.import_id,
            emails=EmailState(body.data.emails) if body.data.emails else None,
        )
        entry = result_entry(result)
        if body.data.invite and body.action == "import":
            entry = replace(entry, invitations=await self._invite(actor, result.import_id, ""))
        return data_response(entry)

    async def _invite(self, actor: Actor, import_id: str, after: str) -> ImportInvitationsEntry:
        done = await self.load_invitations().invite_imported(actor, import_id, NO_ACCESS, after=after)
        return ImportInvitationsEntry(
            import_id=import_id,
            invited=len(done.invited),
            not_invited=[NotInvitedEntry(user_id=one.user_id, reason=str(one.error)) for one in done.refused],
            after=done.after,
        )

    def endpoint(self) -> Endpoint:
        return permission_endpoint(
            "user/import",
            self.handle,
            name="user_import",
            request=UserImportRequest,
            section="ruling R10",
            summary="Import accounts of another system: plan, import, invite",
            body_limit=SCHEMA_BODY_LIMIT,
        )


def result_entry(result: ImportResult) -> ImportResultEntry:
    totals = result.totals
    return copy_as(
        ImportResultEntry,
        totals,
        import_id=result.import_id,
        hashes=dict(sorted(totals.hashes.items())),
        refused_rows=[
            RefusedRowEntry(row=row.number, account=row.title, reason=row.reason) for row in result.refused
        ],
    )
