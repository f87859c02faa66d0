"""One shape of search and list: `data: {query, filters, after, limit}` is answered with `data` and `after` (R9)."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.times import HOUR
from gatehouse.keys.model import Tampered, WrongMasterKey
from gatehouse.keys.sealing import MasterKeys
from gatehouse.permissions.authentication.authenticator import AuthenticatedRequest, Authenticator
from gatehouse.permissions.authentication.credentials import DEFAULT_POLICY
from gatehouse.permissions.documents.grammar import ApplicationId
from gatehouse.permissions.errors import Malformed
from gatehouse.web.api.permissions.authentication import CredentialFields, credentials_of
from gatehouse.web.api.permissions.envelope import untagged_response
from gatehouse.web.api.permissions.schemas import parse_optional_application_id
from gatehouse.web.http.parse import read_json, read_json_object
from gatehouse.web.http.routing import Endpoint

DEFAULT_LIMIT: Final = 25
MAX_LIMIT: Final = 100
MAX_QUERY: Final = 200  # characters
MAX_CURSOR: Final = 1_024  # characters


class ListFilters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Filters of every list; each list has some of them."""

    login: str = ""  # this and the next three: of people
    tag: str = ""
    registered_since: str = ""
    blocked: bool | None = None
    project_id: str = ""  # of applications, groups and service accounts
    event: str = ""  # this and the next four: of activity
    actor: str = ""
    subject: str = ""
    since: str = ""
    until: str = ""

    @property
    def given(self) -> frozenset[str]:
        fields = msgspec.structs.fields(self)
        return frozenset(field.name for field in fields if getattr(self, field.name) != field.default)


NO_FILTERS: Final = ListFilters()


class ListQuestion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    query: str = ""
    filters: ListFilters = NO_FILTERS
    after: str | None = None  # of the answer before; null for the first page
    limit: int = DEFAULT_LIMIT


class ListRequest(CredentialFields, frozen=True, kw_only=True):
    action: Literal["list", "search"]
    application_id: ApplicationId | None = None
    data: ListQuestion = ListQuestion()


class ListResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    data: Sequence[object]
    after: str | None  # asks for the next page; null at the end


class ListedPage(msgspec.Struct, frozen=True, kw_only=True):
    records: Sequence[object]
    position: object = None  # where the next page begins; None at the end


class PageQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A page that an authenticated caller asks for."""

    authenticated: AuthenticatedRequest
    query: str
    filters: ListFilters
    limit: int
    position: Any  # where the page before ended; None for the first page


ReadPage: TypeAlias = Callable[[PageQuery], Awaitable[ListedPage]]


class Cursors(Struct, kw_only=True, eq=False):
    """Cursors show nothing, and work for one caller and one question, for an hour."""

    masters: MasterKeys
    clock: Clock

    def issue(self, binding: str, position: object) -> str:
        content = msgspec.json.encode([self.clock.now() + HOUR, position])
        return urlsafe_b64encode(self.masters.seal(content, purpose=binding)).decode()

    def open(self, binding: str, after: str, *, place: str = "data.after") -> object:
        """Return the position. Raises Malformed."""
        try:
            content = self.masters.open(urlsafe_b64decode(after[:MAX_CURSOR].encode()), purpose=binding)
        except (NotBase64, ValueError, Tampered, WrongMasterKey):
            raise Malformed(f"{place}: is not from an answer to this question; start without it") from None
        ends_at, position = msgspec.json.decode(content)
        if ends_at <= self.clock.now():
            raise Malformed(f"{place}: has expired; start without it")
        return position


class Lists(Struct, kw_only=True, eq=False):
    cursors: Cursors
    authenticator: Authenticator

    def add(
        self,
        endpoint: Endpoint,
        read_page: ReadPage,
        *,
        filters: frozenset[str] = frozenset(),
        action: str = "list",
    ) -> Endpoint:
        """Return the endpoint with one more action."""

        async def handle(request: Request) -> Response:
            body = await read_json_object(request)
            if body.get("action") != action:
                return await endpoint.handler(request)
            return await self._answer(request, endpoint.path, filters, read_page)

        return replace(
            endpoint,
            handler=handle,
            summary=f"{endpoint.summary}, {action}",
            also_request=ListRequest,
            also_answer=ListResponse,
        )

    async def _answer(self, request: Request, path: str, filters: frozenset[str], read_page: ReadPage) -> Response:
        body = await read_json(request, ListRequest)
        application_id = parse_optional_application_id(body.application_id)
        authenticated = await self.authenticator.authenticate(
            credentials_of(request, body), DEFAULT_POLICY, application_id=application_id
        )
        check_question(body.data, filters)
        binding = cursor_binding(path, authenticated, body.data)
        position = None if body.data.after is None else self.cursors.open(binding, body.data.after)
        page = await read_page(
            PageQuery(
                authenticated=authenticated,
                query=body.data.query.strip(),
                filters=body.data.filters,
                limit=body.data.limit,
                position=position,
            )
        )
        after = None if page.position is None else self.cursors.issue(binding, page.position)
        return untagged_response(ListResponse(status="OK", data=page.records, after=after))


def check_question(question: ListQuestion, filters: frozenset[str]) -> None:
    if not 1 <= question.limit <= MAX_LIMIT:
        raise Malformed(f"data.limit: must be 1 to {MAX_LIMIT}")
    if len(question.query) > MAX_QUERY:
        raise Malformed(f"data.query: at most {MAX_QUERY} characters")
    for name in sorted(question.filters.given - filters):
        raise Malformed(f"data.filters.{name}: is not a filter of this list")


def cursor_binding(path: str, authenticated: AuthenticatedRequest, question: ListQuestion) -> str:
    """Name the caller and the question that a cursor belongs to; the limit may change from page to page."""
    reach = authenticated.rights.service_reach
    asked = msgspec.json.encode([question.query, question.filters, authenticated.application_id])
    return f"cursor:{path}:{authenticated.caller.name}:{reach.application_id if reach else 0}:{sha256(asked).hex()}"


def keyed_page(rows: Sequence[Mapping[str, object]], key: str, limit: int) -> ListedPage:
    """Cut the page from rows that are one more than its limit if there is a next page."""
    records = rows[:limit]
    return ListedPage(records=records, position=records[-1][key] if len(rows) > limit else None)
