"""The management API for scripts: people, lists and settings, with the rights of one token."""

from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Any, ClassVar, Final, Literal, Self

import msgspec

from gatehouse.client.errors import ClientError, Denied, Unauthenticated, Unavailable
from gatehouse.client.transport import Request, StandardTransport, Transport, parse_base_url

PREFIX: Final = "/api/permissions/"
OK: Final = 200
SERVER_ERROR: Final = 500
PAGE: Final = 100

ListedKind = Literal["application", "project", "group", "client", "serviceAccount", "activity"]


class CallRefused(ClientError):
    """The service refused the call: bad data, a conflict, or nothing found. The detail is its answer."""

    status: ClassVar[int] = 400
    public: ClassVar[str] = "The service refused the call."

    def __init__(self, detail: str, *, code: int) -> None:
        super().__init__(detail)
        self.code: Final = code  # of HTTP


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """An account, as the management API returns it."""

    user_id: str
    nick: str
    login: str | None = None
    lang: str = ""
    country: str = ""
    registered: str = ""
    email_verified: bool = False
    blocked: bool = False
    tags: tuple[str, ...] = ()
    purchases: tuple[str, ...] = ()
    name: str = ""
    given_name: str = ""
    family_name: str = ""
    username: str | None = None
    zoneinfo: str = ""
    picture: str = ""
    version: int = 0


class Management:
    """Calls the management API with the JWT of a service account or of an administrator.

    `factor` is the one that an administrator's JWT is bound to.
    """

    def __init__(
        self, base_url: str, *, token: str, factor: str | None = None, transport: Transport | None = None
    ) -> None:
        parse_base_url(base_url)
        self._transport = transport or StandardTransport(base_url)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        if factor is not None:
            self._headers["Factor"] = factor

    async def call(
        self,
        path: str,
        action: str,
        data: Mapping[str, object] | None = None,
        *,
        application_id: int | None = None,
        idempotency_key: str | None = None,
    ) -> dict[str, Any]:
        """Send any call of the API and return the whole answer.

        Raises Unauthenticated, Denied, CallRefused, or Unavailable when it may be tried again.
        """
        body: dict[str, object] = {"action": action, "data": data or {}}
        if application_id is not None:
            body["application_id"] = application_id
        headers = self._headers if idempotency_key is None else {**self._headers, "Idempotency-Key": idempotency_key}
        reply = await self._transport.send(
            Request(method="POST", path=PREFIX + path, headers=headers, body=msgspec.json.encode(body))
        )
        try:
            answer: dict[str, Any] = msgspec.json.decode(reply.body, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise Unavailable(f"{path}: not an answer of the API ({reply.status})") from error
        if reply.status != OK or answer.get("status") != "OK":
            raise refusal(reply.status, str(answer.get("error", "")))
        return answer

    async def search_people(self, /, query: str = "", **filters: object) -> AsyncIterator[Person]:
        """Yield accounts, the newest first; filters: login, tag, registered_since, blocked."""
        async for entry in self._pages("user", "search", query, filters):
            yield msgspec.convert(entry, Person)

    async def list(self, /, kind: ListedKind, query: str = "", **filters: object) -> AsyncIterator[dict[str, Any]]:
        """Yield what the token's owner may read of one kind."""
        async for entry in self._pages(kind, "list", query, filters):
            yield entry

    async def get_person(self, user_id: str) -> Person:
        return await self._person("get", {"user_id": user_id})

    async def create_person(self, /, *, idempotency_key: str | None = None, **fields: object) -> Person:
        """Create an account with login, nick and other fields of `Person`; no email is sent."""
        return await self._person("create", fields, idempotency_key=idempotency_key)

    async def save_person(self, /, user_id: str, **fields: object) -> Person:
        """Change the given fields; with `version`, only if it is still that one."""
        return await self._person("save", {"user_id": user_id, **fields})

    async def block_person(self, user_id: str, *, blocked: bool = True) -> Person:
        return await self._person("block" if blocked else "unblock", {"user_id": user_id})

    async def end_sessions(self, user_id: str) -> None:
        """End every session and token of the account."""
        await self.call("user", "end_sessions", {"user_id": user_id})

    async def reset_factors(self, user_id: str, *, reason: str = "") -> None:
        await self.call("user", "reset_factors", {"user_id": user_id, "reason": reason})

    async def erase_person(self, user_id: str) -> None:
        await self.call("user", "erase", {"user_id": user_id})

    async def save_settings(self, settings: Mapping[str, object]) -> None:
        """Store settings by name; None restores the default."""
        await self.call("settings", "save", {"settings": settings})

    async def _person(self, action: str, data: Mapping[str, object], *, idempotency_key: str | None = None) -> Person:
        answer = await self.call("user", action, data, idempotency_key=idempotency_key)
        return msgspec.convert(answer["data"], Person)

    async def _pages(
        self, path: str, action: str, query: str, filters: Mapping[str, object]
    ) -> AsyncIterator[dict[str, Any]]:
        after: str | None = None
        while True:
            data = {"query": query, "filters": filters, "limit": PAGE} | ({"after": after} if after else {})
            answer = await self.call(path, action, data)
            for entry in answer["data"]:
                yield entry
            after = answer["after"]
            if after is None:
                return

    async def close(self) -> None:
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def refusal(status: int, detail: str) -> ClientError:
    if status == Unauthenticated.status:
        return Unauthenticated(detail)
    if status == Denied.status:
        return Denied(detail)
    if status >= SERVER_ERROR or status == 429:  # noqa: PLR2004 - HTTP
        return Unavailable(detail)
    return CallRefused(detail, code=status)
