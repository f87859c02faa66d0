"""POST /api/permissions/user/sessions and user/methods: where somebody is signed in, and with what (interface §4.14).

Never anything one could sign in with: no cookie, no digest, no key and no code.
"""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.model import Session, User
from gatehouse.accounts.own.model import Holdings
from gatehouse.accounts.own.profile import Profile
from gatehouse.accounts.second_factors.model import Passkey
from gatehouse.accounts.sessions import Sessions
from gatehouse.oauth.consent import Consents
from gatehouse.oauth.model import Client, Consent
from gatehouse.permissions.callers.credentials import ORDINARY
from gatehouse.permissions.commands.users import People
from gatehouse.web.agents import device_of
from gatehouse.web.parse import read_json
from gatehouse.web.permissions.credentials import Asked
from gatehouse.web.permissions.envelope import answer, post
from gatehouse.web.permissions.front_desk import FrontDesk
from gatehouse.web.permissions.moments import moment
from gatehouse.web.places import Places
from gatehouse.web.routes.table import Endpoint

LANG: Final = "en"  # of the names of places


class SignsData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    user_id: str


class SignsRequest(Asked, frozen=True, kw_only=True):
    action: Literal["get"]
    data: SignsData


class SessionEntry(msgspec.Struct, frozen=True, kw_only=True):
    session_id: str  # a name for it: it opens nothing
    device: str
    place: str  # empty where no GeoIP file says it
    address: str
    created: str
    seen: str


class ConnectedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A client connected to the account."""

    client_id: str
    name: str
    scopes: tuple[str, ...]
    since: str


class SignedInEntry(msgspec.Struct, frozen=True, kw_only=True):
    sessions: tuple[SessionEntry, ...]  # the last seen first
    connected: tuple[ConnectedEntry, ...]


class SignedInAnswer(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    data: SignedInEntry


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


class MethodsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    data: MethodsEntry


class UserSignEndpoints:
    def __init__(
        self,
        *,
        people: People,
        sessions: Sessions,
        consents: Consents,
        profile: Profile,
        places: Places,
        desk: FrontDesk,
    ) -> None:
        self._people = people
        self._sessions = sessions
        self._consents = consents
        self._profile = profile
        self._places = places
        self._desk = desk

    async def sessions(self, request: Request) -> Response:
        user_id = (await self._user(request)).user_id
        live, connected = await self._sessions.of_user(user_id), await self._consents.of_user(user_id)
        return answer(signed_in(live, connected, self._places))

    async def methods(self, request: Request) -> Response:
        user = await self._user(request)
        return answer(methods_of(user, await self._profile.holdings(user)))

    async def _user(self, request: Request) -> User:
        ask = await read_json(request, SignsRequest)
        return await self._people.get(await self._desk.actor(request, ask, ORDINARY), ask.data.user_id)

    def endpoints(self) -> list[Endpoint]:
        return [
            post(
                "user/sessions",
                self.sessions,
                name="user_sessions",
                request=SignsRequest,
                section="interface §4.14",
                summary="Sessions and connected clients of an account: get",
                answers=SignedInAnswer,
            ),
            post(
                "user/methods",
                self.methods,
                name="user_methods",
                request=SignsRequest,
                section="interface §4.14",
                summary="Sign-in methods of an account, without secrets: get",
                answers=MethodsAnswer,
            ),
        ]


def signed_in(
    sessions: Sequence[Session], connected: Sequence[tuple[Consent, Client]], places: Places
) -> SignedInEntry:
    return SignedInEntry(
        sessions=tuple(session_entry(one, places) for one in sessions),
        connected=tuple(
            ConnectedEntry(
                client_id=client.client_id,
                name=client.name,
                scopes=tuple(consent.scopes),
                since=moment(consent.given_at),
            )
            for consent, client in connected
        ),
    )


def session_entry(session: Session, places: Places) -> SessionEntry:
    return SessionEntry(
        session_id=session.session_id,
        device=device_of(session.agent),
        place=places.name(session.address, LANG),
        address=session.address,
        created=moment(session.created_at),
        seen=moment(session.seen_at),
    )


def methods_of(user: User, held: Holdings) -> MethodsEntry:
    overview = held.overview
    totp = TotpEntry(since=moment(overview.totp_since), used=moment(overview.totp_used_at))
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
        created=moment(passkey.created_at),
        used=moment(passkey.used_at),
    )
