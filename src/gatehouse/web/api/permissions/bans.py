"""POST /api/permissions/user/ban: bans of people (interface §4.17, R10)."""

from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.bans.model import Ban, BanScope, BanState
from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.fields.derive import copy_as
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.times import iso8601
from gatehouse.permissions.authentication.authenticator import AuthenticatedRequest, Authenticator
from gatehouse.permissions.authentication.credentials import DEFAULT_POLICY
from gatehouse.permissions.commands.bans import BanCommands, BanDraft
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.documents.grammar import ApplicationId
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.rights.actor import Actor
from gatehouse.web.api.permissions.authentication import CredentialFields, actor_of, credentials_of
from gatehouse.web.api.permissions.envelope import data_response, permission_endpoint, untagged_response
from gatehouse.web.api.permissions.listing import DEFAULT_LIMIT, MAX_LIMIT, Cursors
from gatehouse.web.api.permissions.schemas import parse_optional_application_id
from gatehouse.web.http.parse import read_action
from gatehouse.web.http.routing import Endpoint


class BanListFilters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    state: Literal["", "active", "ended", "lifted"] = ""


class BanData(BanDraft, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class BanListData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    filters: BanListFilters = BanListFilters()
    after: str | None = None
    limit: int = DEFAULT_LIMIT


class BanScopeFields(CredentialFields, frozen=True, kw_only=True):
    """Without application_id and project_id it is about the whole installation."""

    user_id: str = ""
    application_id: ApplicationId | None = None
    project_id: str = ""


class SaveBan(BanScopeFields, frozen=True, kw_only=True, tag_field="action", tag="save"):
    data: BanData = BanData()


class LiftBan(BanScopeFields, frozen=True, kw_only=True, tag_field="action", tag="lift"):
    data: BanData = BanData()  # accepted and ignored (R6)


class ListBans(BanScopeFields, frozen=True, kw_only=True, tag_field="action", tag="list"):
    data: BanListData = BanListData()


BanRequest: TypeAlias = SaveBan | LiftBan | ListBans


class BanEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    ban_id: str
    user_id: str
    state: BanState
    reason: str
    public_text: str
    until: int  # Unix seconds; 0 for no end
    author: str
    created: str
    application_id: int = 0  # left out unless the ban is about an application; so is the next for a project
    project_id: str = ""
    devices: int = 0  # that it covers, with any account
    lifted: str = ""  # this and the next once it was lifted
    lifted_by: str = ""
    source: str = ""  # ID of the ban that it copies to another account of the person
    erased: str = ""  # when its account was erased; it stays for accounts that match


class BanResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    status: str
    data: tuple[BanEntry, ...] | BanEntry  # a list for list
    after: str | None = None  # of list: asks for the next page; null at the end


class BanListResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    data: tuple[BanEntry, ...]
    after: str | None


class BanEndpoint(Struct, kw_only=True, eq=False):
    bans: BanCommands
    cursors: Cursors
    authenticator: Authenticator
    clock: Clock

    async def handle(self, request: Request) -> Response:
        body: BanRequest = await read_action(request, BanRequest)
        application_id = parse_optional_application_id(body.application_id)
        authenticated = await self.authenticator.authenticate(
            credentials_of(request, body), DEFAULT_POLICY, application_id=application_id
        )
        actor, scope = actor_of(request, authenticated), scope_of(authenticated, body)
        match body:
            case SaveBan():
                saved = await self.bans.save(actor, require_user_id(body), scope or BanScope(), body.data)
                return data_response(ban_entry(saved, self.clock.now()))
            case LiftBan():
                lifted = await self.bans.lift(actor, require_user_id(body), scope or BanScope())
                return data_response(ban_entry(lifted, self.clock.now()))
            case ListBans():
                return await self._list(authenticated, actor, body, scope)

    async def _list(
        self, authenticated: AuthenticatedRequest, actor: Actor, body: ListBans, scope: BanScope | None
    ) -> Response:
        if not 1 <= body.data.limit <= MAX_LIMIT:
            raise Malformed(f"data.limit: must be 1 to {MAX_LIMIT}")
        user_id = require_user_id(body) if body.user_id else ""
        state = BanState(body.data.filters.state) if body.data.filters.state else None
        question = sha256(msgspec.json.encode([user_id, scope, state]))
        binding = f"cursor:bans:{authenticated.caller.name}:{question.hex()}"
        before = "" if body.data.after is None else str(self.cursors.open(binding, body.data.after))
        bans = await self.bans.list(
            actor, user_id=user_id, scope=scope, state=state, before=before, limit=body.data.limit + 1
        )
        page, now = bans[: body.data.limit], self.clock.now()
        after = self.cursors.issue(binding, page[-1].ban_id) if len(bans) > len(page) else None
        entries = tuple(ban_entry(ban, now) for ban in page)
        return untagged_response(BanListResponse(status="OK", data=entries, after=after))

    def endpoint(self) -> Endpoint:
        return permission_endpoint(
            "user/ban",
            self.handle,
            name="user_ban",
            request=BanRequest,
            section="interface §4.17",
            summary="Bans of people: save, lift, list",
            answers=BanResponse,
        )


def require_user_id(body: BanScopeFields) -> str:
    return grammar.check_user_id(body.user_id, "user_id")


def scope_of(authenticated: AuthenticatedRequest, body: BanScopeFields) -> BanScope | None:
    """Return the scope that a request names; None for the installation.

    The application of a service JWT counts as named (R6), except application 1, which stands for none.
    """
    if body.project_id:
        if body.application_id is not None:
            raise Malformed("project_id: not together with application_id")
        return BanScope(project_id=grammar.check_project_id(body.project_id, "project_id"))
    if authenticated.application_id is None or (
        body.application_id is None and authenticated.application_id == CENTRAL_APPLICATION
    ):
        return None
    return BanScope(application_id=authenticated.application_id)


def ban_entry(ban: Ban, now: int) -> BanEntry:
    return copy_as(
        BanEntry,
        ban,
        state=ban.state(now),
        created=iso8601(ban.created_at),
        lifted=iso8601(ban.lifted_at) if ban.lifted_at else "",
        erased=iso8601(ban.erased_at) if ban.erased_at else "",
    )
