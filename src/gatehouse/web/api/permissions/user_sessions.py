"""POST /api/permissions/user/sessions and user/methods: the sessions and sign-in methods of a user (interface §4.14).

Nothing here can be used to sign in: no cookie, no digest, no key and no code.
"""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.model import User
from gatehouse.accounts.own_account.model import AccountDetails
from gatehouse.accounts.own_account.profile import AccountProfile
from gatehouse.accounts.second_factors.model import Passkey
from gatehouse.accounts.session_model import Session
from gatehouse.accounts.sessions import Sessions
from gatehouse.fields.derive import copy_as
from gatehouse.kernel.times import iso8601
from gatehouse.oauth.api_model import plain_scope
from gatehouse.oauth.authorize.service import Consents
from gatehouse.oauth.given_grants import GivenGrants, ListedGrant
from gatehouse.oauth.model import Client, Consent
from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.authentication.credentials import DEFAULT_POLICY
from gatehouse.permissions.commands.users import UserLabelCommands
from gatehouse.web.api.permissions.authentication import CredentialFields, actor_of, credentials_of
from gatehouse.web.api.permissions.envelope import data_response, permission_endpoint
from gatehouse.web.api.permissions.users import UserRequest
from gatehouse.web.http.browser import device_name
from gatehouse.web.http.geoip import GeoIpLookup
from gatehouse.web.http.parse import read_json
from gatehouse.web.http.routing import Endpoint

DAY_CHARACTERS: Final = len("2030-01-31")
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


class ActingApplicationEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An application whose programs act through a grant."""

    application_id: int
    name: str
    programs: tuple[str, ...]  # names


class GrantEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What a person gave to a client with one sign-in."""

    grant_id: str
    client_id: str
    name: str
    resource: str  # of the API; empty for none
    scopes: tuple[str, ...]
    acting: tuple[ActingApplicationEntry, ...]
    given: str
    used: str  # the day it last gave tokens
    ends: str


class UserGrantsEntry(msgspec.Struct, frozen=True, kw_only=True):
    grants: tuple[GrantEntry, ...]  # the newest first
    ended: bool = False  # whether the request ended one


class UserGrantsResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    data: UserGrantsEntry


class GrantData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    user_id: str
    grant_id: str = ""  # of end


class UserGrantsRequest(CredentialFields, frozen=True, kw_only=True):
    action: Literal["get", "end"]
    data: GrantData


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
    phone_code: bool
    phone_closed: bool  # after too many wrong codes
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
        given_grants: GivenGrants,
        profile: AccountProfile,
        places: GeoIpLookup,
        authenticator: Authenticator,
    ) -> None:
        self._people = people
        self._sessions = sessions
        self._consents = consents
        self._given_grants = given_grants
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

    async def grants(self, request: Request) -> Response:
        """List or end what a person gave; people do it with their own, and administrators with everyone's (R11)."""
        body = await read_json(request, UserGrantsRequest)
        authenticated = await self._authenticator.authenticate(credentials_of(request, body), DEFAULT_POLICY)
        actor, user_id = actor_of(request, authenticated), body.data.user_id
        if not user_id or actor.user_id != user_id:
            user_id = (await self._people.get(actor, user_id)).user_id
        ended = body.action == "end" and await self._given_grants.end(user_id, body.data.grant_id, actor.origin)
        listed = await self._given_grants.of_user(user_id)
        return data_response(UserGrantsEntry(grants=tuple(map(grant_entry, listed)), ended=ended))

    async def _user(self, request: Request) -> User:
        body = await read_json(request, UserRequest)
        return await self._people.get(
            actor_of(request, await self._authenticator.authenticate(credentials_of(request, body), DEFAULT_POLICY)),
            body.data.user_id,
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
                "user/grants",
                self.grants,
                name="user_grants",
                request=UserGrantsRequest,
                section="interface R11",
                summary="What a person gave to clients and programs: get, end",
                answers=UserGrantsResponse,
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


def grant_entry(listed: ListedGrant) -> GrantEntry:
    grant = listed.grant
    return GrantEntry(
        grant_id=grant.grant_id,
        client_id=grant.client_id,
        name=grant.name,
        resource=listed.resource,
        scopes=tuple(name for name in map(plain_scope, grant.scopes) if name),
        acting=tuple(copy_as(ActingApplicationEntry, one) for one in listed.acting),
        given=iso8601(grant.given_at),
        used=iso8601(grant.used_at)[:DAY_CHARACTERS],
        ends=iso8601(grant.ends_at),
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


def methods_entry(user: User, details: AccountDetails) -> MethodsEntry:
    overview = details.overview
    totp = TotpEntry(since=iso8601(overview.totp_since), used=iso8601(overview.totp_used_at))
    return MethodsEntry(
        password=user.password_hash is not None,
        totp=totp if user.sealed_totp is not None else None,
        passkeys=tuple(map(passkey_entry, details.passkeys)),
        email_code=user.email_code,
        phone_code=user.phone_code,
        phone_closed=user.phone_closed,
        recovery_left=overview.recovery_left,
    )


def passkey_entry(passkey: Passkey) -> PasskeyEntry:
    return PasskeyEntry(
        passkey_id=passkey.passkey_id,
        name=passkey.name,
        created=iso8601(passkey.created_at),
        used=iso8601(passkey.used_at),
    )
