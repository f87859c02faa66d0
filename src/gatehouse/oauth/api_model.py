"""The API that an application declares: the audience of access tokens that are not for this service (R9)."""

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import Final

import msgspec
from msgspec import Struct

from gatehouse.accounts.bans.model import find_ban
from gatehouse.accounts.model import User
from gatehouse.oauth.model import APPLICATION_SCOPES, Client

API_TOKEN_SECONDS: Final = 300
SCOPE_MARK: Final = "#"  # between resource and scope; a resource has no fragment
MAX_SCOPE_CLAIM: Final = 2_048  # characters of `scope` in a token for an API, which takes 6 KB in all


class ApiAccess(StrEnum):
    """Which clients may ask for access."""

    OWN = "own"  # those of the application, and service accounts of its project
    LISTED = "listed"  # these too
    ANY = "any"  # any other too, for a person who consents; never for itself


class ActPolicy(StrEnum):
    """Whether the API takes tokens of programs that act for a person: it must read `act` (RFC 8693 §4.1)."""

    REFUSED = "refused"
    ACCEPTED = "accepted"


class ApiScope(Struct, frozen=True, kw_only=True):
    title: str
    description: str = ""


class Api(msgspec.Struct, frozen=True, kw_only=True):
    resource: str
    application_id: int
    project_id: str | None
    name: str  # of the application
    scopes: Mapping[str, ApiScope] = msgspec.field(default_factory=dict)
    access: ApiAccess = ApiAccess.OWN
    clients: tuple[str, ...] = ()  # `client:<id>` or a client ID, or the digits of a service account
    token_seconds: int = API_TOKEN_SECONDS
    act: ActPolicy = ActPolicy.REFUSED

    def admits_client(self, client: Client) -> bool:
        """Whether the client may ask for access in its own name."""
        return client.application_id == self.application_id or self._lists_client(client)

    def admits_account(self, user_id: str, project_id: str) -> bool:
        """The same for a service account."""
        return project_id == self.project_id or (self.access is ApiAccess.LISTED and user_id in self.clients)

    def admits_client_of_person(self, client: Client) -> bool:
        """Whether the client may ask for access in the name of a person."""
        return self.access is ApiAccess.ANY or self.admits_client(client)

    def _lists_client(self, client: Client) -> bool:
        """Whether it is listed; an entry of digits only is a service account, never a client of that ID."""
        named = client.subject in self.clients or (
            not client.client_id.isdigit() and client.client_id in self.clients
        )
        return self.access is ApiAccess.LISTED and named

    def qualified_scopes(self, wanted: Collection[str]) -> tuple[str, ...]:
        """Return the scopes of a grant: access to the API, and its scopes among the wanted ones.

        `roles` and the like are of the API's application here, not of the client's.
        """
        names = ("", *(name for name in (*self.scopes, *APPLICATION_SCOPES) if name in wanted))
        return tuple(f"{self.resource}{SCOPE_MARK}{name}" for name in names)

    def scopes_in(self, qualified: Collection[str], client: Client) -> tuple[str, ...]:
        """Return the names of its scopes among those of a grant.

        Scopes that it no longer declares, or that the client may no longer have, are left out.
        """
        application_scopes = (name for name in APPLICATION_SCOPES if name in client.scopes)
        return tuple(
            name for name in (*self.scopes, *application_scopes) if f"{self.resource}{SCOPE_MARK}{name}" in qualified
        )

    def scope_texts(self) -> Mapping[str, str]:
        """Return how pages show its scopes: by title, and what has none by the name of the application."""
        texts = {name: f"{self.name}{SCOPE_MARK}{name}" for name in ("", *APPLICATION_SCOPES)}
        texts |= {name: scope.title for name, scope in self.scopes.items()}
        return {f"{self.resource}{SCOPE_MARK}{name}": text for name, text in texts.items()}

    @property
    def accepts_act(self) -> bool:
        return self.act is ActPolicy.ACCEPTED

    def is_banned(self, user: User, now: int) -> bool:
        """Whether the person is banned from its application now."""
        return (
            find_ban(user.bans, now, application_id=self.application_id, project_id=self.project_id or "") is not None
        )


def resource_in(scopes: Iterable[str]) -> str:
    """Return the resource that a grant is for; "" for none."""
    return next((scope.partition(SCOPE_MARK)[0] for scope in scopes if SCOPE_MARK in scope), "")


def plain_scope(scope: str) -> str:
    """Return the name of a scope as clients send it; "" for access to an API without a scope."""
    return scope.rpartition(SCOPE_MARK)[2]
