"""POST /api/permissions/user/import: accounts of other systems (R10)."""

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.importing.model import EmailState, ImportFormat
from gatehouse.admin.people_import import ImportResult, PeopleImport
from gatehouse.fields.derive import copy_as
from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.authentication.credentials import DEFAULT_POLICY
from gatehouse.web.api.permissions.authentication import CredentialFields, actor_of, credentials_of
from gatehouse.web.api.permissions.envelope import data_response, permission_endpoint
from gatehouse.web.http.parse import read_json
from gatehouse.web.http.routing import SCHEMA_BODY_LIMIT, Endpoint


class UserImportData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    lines: list[str]  # of the file; of CSV the header first
    format: Literal["csv", "jsonl"] = "csv"
    emails: Literal["", "verified", "unverified"] = ""  # needed if the lines have no email_verified
    import_id: str = ""  # to continue an import with other lines; the default is made from the lines


class UserImportRequest(CredentialFields, frozen=True, kw_only=True):
    action: Literal["plan", "import"]
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


class UserImportEndpoint(Struct, kw_only=True, eq=False):
    people: PeopleImport
    authenticator: Authenticator

    async def handle(self, request: Request) -> Response:
        body = await read_json(request, UserImportRequest)
        authenticated = await self.authenticator.authenticate(credentials_of(request, body), DEFAULT_POLICY)
        result = await self.people.run(
            actor_of(request, authenticated),
            "\n".join(body.data.lines).encode(),
            ImportFormat(body.data.format),
            dry_run=body.action == "plan",
            import_id=body.data.import_id,
            emails=EmailState(body.data.emails) if body.data.emails else None,
        )
        return data_response(result_entry(result))

    def endpoint(self) -> Endpoint:
        return permission_endpoint(
            "user/import",
            self.handle,
            name="user_import",
            request=UserImportRequest,
            section="ruling R10",
            summary="Import accounts of another system: plan, import",
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
