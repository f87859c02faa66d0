"""POST /api/permissions/user/info, user/tags and user/purchases (interface §4.5, R1)."""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.model import ACCOUNT_FIELDS, Session, User, account_values
from gatehouse.accounts.own_account.model import AccountDetails
from gatehouse.accounts.own_account.profile import AccountProfile
from gatehouse.accounts.second_factors.model import Passkey
from gatehouse.accounts.sessions import Sessions
from gatehouse.fields.derive import entry_members, with_members
from gatehouse.images.model import image_url
from gatehouse.kernel.times import iso8601
from gatehouse.oauth.authorize.service import Consents
from gatehouse.oauth.model import Client, Consent
from gatehouse.permissions.authentication.credentials import DEFAULT_POLICY, USER_INFO
from gatehouse.permissions.commands.users import UserLabelCommands
from gatehouse.web.api.permissions.authentication import CredentialFields, RequestAuthenticator
from gatehouse.web.api.permissions.envelope import data_response, permission_endpoint
from gatehouse.web.http.browser import device_name
from gatehouse.web.http.geoip import GeoIpLookup
from gatehouse.web.http.parse import read_json
from gatehouse.web.http.responses import json_response
from gatehouse.web.http.routing import Endpoint


class CallerInfoRequest(CredentialFields, frozen=True, kw_only=True):
    pass


class CallerInfoResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    projects: int  # that the token's owner made and that are not removed


class UserData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    user_id: str


class UserRequest(CredentialFields, frozen=True, kw_only=True):
    action: Literal["get"]
    data: UserData


@with_members(lambda: entry_members(ACCOUNT_FIELDS))
class UserEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Account data (R1), without credentials."""

    user_id: str
    level: str
    registered: str
    blocked: bool
    tags: tuple[str, ...]  # as people set them; providers set the next two
    purchases: tuple[str, ...]
    provided_tags: tuple[str, ...]
    provided_purchases: tuple[str, ...]
    picture: str  # address of the image at this installation
    version: int


class UserTagsData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    user_id: str
    tags: list[object] | None  # null removes all of them (R6)


class UserTagsRequest(CredentialFields, frozen=True, kw_only=True):
    data: UserTagsData


class PurchasesData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    user_id: str
    purchases: list[object] | None


class PurchasesRequest(CredentialFields, frozen=True, kw_only=True):
    data: PurchasesData


class UserEndpoints(Struct, kw_only=True, eq=False):
    people: UserLabelCommands
    authenticator: RequestAuthenticator

    async def info(self, request: Request) -> Response:
        ask = await read_json(
            request, CallerInfoRequest, may_be_empty=True
        )  # credentials only, and those may be headers
        visit = await self.authenticator.authenticate(request, ask, USER_INFO)
        return json_response(
            CallerInfoResponse(status="OK", projects=await self.people.count_projects(visit.caller.user_id))
        )

    async def save_tags(self, request: Request) -> Response:
        ask = await read_json(request, UserTagsRequest)
        actor = await self.authenticator.authenticate_actor(request, ask, DEFAULT_POLICY)
        saved = await self.people.save_tags(actor, ask.data.user_id, ask.data.tags or ())
        return data_response({"user_id": saved.user_id, "tags": sorted(saved.tags)})

    async def save_purchases(self, request: Request) -> Response:
        ask = await read_json(request, PurchasesRequest)
        actor = await self.authenticator.authenticate_actor(request, ask, DEFAULT_POLICY)
        saved = await self.people.save_purchases(actor, ask.data.user_id, ask.data.purchases or ())
        return data_response({"user_id": saved.user_id, "purchases": sorted(saved.purchases)})

    def endpoints(self) -> list[Endpoint]:
        return [
            permission_endpoint(
                "user/info",
                self.info,
                name="user_info",
                request=CallerInfoRequest,
                section="interface §4.5",
                summary="Number of projects the caller created",
                answers=CallerInfoResponse,
            ),
            permission_endpoint(
                "user/tags",
                self.save_tags,
                name="user_tags",
                request=UserTagsRequest,
                section="interface §4.5",
                summary="Replace the tags of an account",
            ),
            permission_endpoint(
                "user/purchases",
                self.save_purchases,
                name="user_purchases",
                request=PurchasesRequest,
                section="interface §4.5",
                summary="Replace the purchases of an account",
            ),
        ]


def user_entry(user: User, base_url: str) -> UserEntry:
    values = account_values(user) | {"picture": image_url(base_url, user.picture)}
    return UserEntry(
        user_id=user.user_id,
        level=user.level,
        registered=iso8601(user.reg_time),
        blocked=user.blocked,
        provided_tags=tuple(sorted(user.provided_tags)),
        provided_purchases=tuple(sorted(user.provided_purchases)),
        version=user.version,
        **values,
    )


# POST /api/permissions/user/sessions and user/methods: the sessions and sign-in methods of a user (interface §4.14).
#
# Nothing here can be used to sign in: no cookie, no digest, no key and no code.


PLACE_LANG: Final = "en"  # of the names of places


class SessionEntry(msgspec.Struct, frozen=True, kw_only=True):
    session_id: str  # an identifier that gives no access
    device: str
    place: str  # empty when no GeoIP file has it
    address: str
    created: str
    seen: str


class ConnectedClientEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A client connected to the account."""

    client_id: str
    name: str
    scopes: tuple[str, ...]
    since: str


class UserSessionsEntry(msgspec.Struct, frozen=True, kw_only=True):
    sessions: tuple[SessionEntry, ...]  # the last seen first
    connected: tuple[ConnectedClientEntry, ...]


class UserSessionsResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    data: UserSessionsEntry


class TotpEntry(msgspec.Struct, frozen=True, kw_only=True):
    since: str
    used: str  # empty for never


class PasskeyEntry(msgspec.Struct, frozen=True, kw_only=True):
    passkey_id: str
    name: str
    created: str
    used: str  # empty for never


class MethodsEntry(msgspec.Struct, frozen=True, kw_only=True):
    password: bool
    totp: TotpEntry | None
    passkeys: tuple[PasskeyEntry, ...]  # the oldest first
    email_code: bool
    recovery_left: int


class MethodsResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    data: MethodsEntry


class UserSessionEndpoints:
    def __init__(
        self,
        *,
        people: UserLabelCommands,
        sessions: Sessions,
        consents: Consents,
        profile: AccountProfile,
        places: GeoIpLookup,
        authenticator: RequestAuthenticator,
    ) -> None:
        self._people = people
        self._sessions = sessions
        self._consents = consents
        self._profile = profile
        self._places = places
        self._authenticator = authenticator

    async def sessions(self, request: Request) -> Response:
        user_id = (await self._user(request)).user_id
        live, connected = await self._sessions.of_user(user_id), await self._consents.of_user(user_id)
        return data_response(user_sessions_entry(live, connected, self._places))

    async def methods(self, request: Request) -> Response:
        user = await self._user(request)
        return data_response(methods_entry(user, await self._profile.load_details(user)))

    async def _user(self, request: Request) -> User:
        ask = await read_json(request, UserRequest)
        return await self._people.get(
            await self._authenticator.authenticate_actor(request, ask, DEFAULT_POLICY), ask.data.user_id
        )

    def endpoints(self) -> list[Endpoint]:
        return [
            permission_endpoint(
                "user/sessions",
                self.sessions,
                name="user_sessions",
                request=UserRequest,
                section="interface §4.14",
                summary="Sessions and connected clients of an account: get",
                answers=UserSessionsResponse,
            ),
            permission_endpoint(
                "user/methods",
                self.methods,
                name="user_methods",
                request=UserRequest,
                section="interface §4.14",
                summary="Sign-in methods of an account, without secrets: get",
                answers=MethodsResponse,
            ),
        ]


def user_sessions_entry(
    sessions: Sequence[Session], connected: Sequence[tuple[Consent, Client]], places: GeoIpLookup
) -> UserSessionsEntry:
    return UserSessionsEntry(
        sessions=tuple(session_entry(session, places) for session in sessions),
        connected=tuple(
            ConnectedClientEntry(
                client_id=client.client_id,
                name=client.name,
                scopes=tuple(consent.scopes),
                since=iso8601(consent.given_at),
            )
            for consent, client in connected
        ),
    )


def session_entry(session: Session, places: GeoIpLookup) -> SessionEntry:
    return SessionEntry(
        session_id=session.session_id,
        device=device_name(session.agent),
        place=places.place_name(session.address, PLACE_LANG),
        address=session.address,
        created=iso8601(session.created_at),
        seen=iso8601(session.seen_at),
    )


def methods_entry(user: User, held: AccountDetails) -> MethodsEntry:
    overview = held.overview
    totp = TotpEntry(since=iso8601(overview.totp_since), used=iso8601(overview.totp_used_at))
    return MethodsEntry(
        password=user.password_hash is not None,
        totp=totp if user.sealed_totp is not None else None,
        passkeys=tuple(map(passkey_entry, held.passkeys)),
        email_code=user.email_code,
        recovery_left=overview.recovery_left,
    )


def passkey_entry(passkey: Passkey) -> PasskeyEntry:
    return PasskeyEntry(
        passkey_id=passkey.passkey_id,
        name=passkey.name,
        created=iso8601(passkey.created_at),
        used=iso8601(passkey.used_at),
    )
