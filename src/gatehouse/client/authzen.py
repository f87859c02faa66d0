"""AuthZEN 1.0: an application asks about any person or service account, and searches (interface §4.18).

For the owner of a JWT that a request brings, `Gatehouse` is faster: it caches.
"""

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeAlias, TypeVar

import msgspec

from gatehouse.client.credentials import Credential, bearer_header
from gatehouse.client.errors import Unavailable
from gatehouse.client.management import OK, refusal
from gatehouse.client.token_source import TokenSource
from gatehouse.client.transport import Request, StandardTransport, Transport, parse_base_url

PREFIX: Final = "/access/v1/"
MAX_EVALUATIONS: Final = 1_000  # of one request
PAGE_SIZE: Final = 1_000

R = TypeVar("R")
Semantic: TypeAlias = Literal["execute_all", "deny_on_first_deny", "permit_on_first_permit"]
NOTHING: Final[Mapping[str, object]] = {}


@dataclass(frozen=True, slots=True)
class Entity:
    """A subject (`user`, `service_account`) or a resource (`application`, `project`)."""

    type: str
    id: str
    properties: Mapping[str, object] = field(default_factory=dict, compare=False)

    def members(self) -> dict[str, object]:
        more = {"properties": self.properties} if self.properties else {}
        return {"type": self.type, "id": self.id, **more}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One question: whether the subject may do this on the resource."""

    subject: Entity
    action: str
    resource: Entity
    context: Mapping[str, object] = field(default_factory=dict)

    def members(self) -> dict[str, object]:
        return {
            "subject": self.subject.members(),
            "action": {"name": self.action},
            "resource": self.resource.members(),
            **context_members(self.context),
        }


class Answer(msgspec.Struct, frozen=True):
    decision: bool


class AnswerList(msgspec.Struct, frozen=True):
    evaluations: tuple[Answer, ...]


class SearchPage(msgspec.Struct, frozen=True):
    next_token: str = ""


class Results(msgspec.Struct, frozen=True):
    results: tuple[dict[str, Any], ...]
    page: SearchPage = SearchPage()


class Authzen:
    """Asks with the credential of an application, or with tokens for the scope `authzen`.

    Every method raises Unauthenticated or Denied when the credential is refused, CallRefused for a bad question, and
    Unavailable when nothing was decided.
    """

    def __init__(
        self,
        base_url: str,
        *,
        credential: Credential | TokenSource,
        page_size: int = PAGE_SIZE,
        transport: Transport | None = None,
    ) -> None:
        parse_base_url(base_url)
        self._base_url = base_url
        self._credential = credential
        self._page_size = page_size  # results that a search reads with one request
        self._transport = transport or StandardTransport(base_url)

    async def evaluate(
        self, subject: Entity, action: str, resource: Entity, context: Mapping[str, object] = NOTHING
    ) -> bool:
        """Whether the subject may do this; no for whatever does not exist."""
        answer = await self._ask("evaluation", Evaluation(subject, action, resource, context).members(), Answer)
        return answer.decision

    async def evaluations(self, questions: Iterable[Evaluation], *, semantic: Semantic = "execute_all") -> list[bool]:
        """Return the decisions in order; unless all are executed, they end at the one that decides."""
        ends_with = {"deny_on_first_deny": False, "permit_on_first_permit": True}.get(semantic)
        decisions: list[bool] = []
        asked = [question.members() for question in questions]
        for start in range(0, len(asked), MAX_EVALUATIONS):
            body = {
                "evaluations": asked[start : start + MAX_EVALUATIONS],
                "options": {"evaluations_semantic": semantic},
            }
            answer = await self._ask("evaluations", body, AnswerList)
            decisions += [one.decision for one in answer.evaluations]
            if ends_with is not None and ends_with in decisions:
                break
        return decisions

    async def search_subjects(
        self, action: str, resource: Entity, *, subject_type: str = "user"
    ) -> AsyncIterator[Entity]:
        """Yield everyone who may do the action on the resource."""
        asked = {"subject": {"type": subject_type}, "action": {"name": action}, "resource": resource.members()}
        async for found in self._pages("search/subject", asked):
            yield Entity(found["type"], found["id"])

    async def search_actions(
        self, subject: Entity, resource: Entity, context: Mapping[str, object] = NOTHING
    ) -> AsyncIterator[str]:
        """Yield what the subject may do on the resource."""
        asked = {"subject": subject.members(), "resource": resource.members(), **context_members(context)}
        async for found in self._pages("search/action", asked):
            yield found["name"]

    async def search_resources(
        self,
        subject: Entity,
        action: str,
        *,
        resource_type: str = "project",
        properties: Mapping[str, object] = NOTHING,
        context: Mapping[str, object] = NOTHING,
    ) -> AsyncIterator[Entity]:
        """Yield where the subject may do the action."""
        resource: dict[str, object] = {"type": resource_type, **({"properties": properties} if properties else {})}
        asked = {"subject": subject.members(), "action": {"name": action}, "resource": resource}
        async for found in self._pages("search/resource", {**asked, **context_members(context)}):
            yield Entity(found["type"], found["id"])

    async def _pages(self, path: str, asked: Mapping[str, object]) -> AsyncIterator[dict[str, Any]]:
        token = ""
        while True:
            page = {"limit": self._page_size, **({"token": token} if token else {})}
            answer = await self._ask(path, {**asked, "page": page}, Results)
            for found in answer.results:
                yield found
            token = answer.page.next_token
            if not token:
                return

    async def _ask(self, path: str, body: Mapping[str, object], kind: type[R]) -> R:
        headers = {"Content-Type": "application/json", **await self._headers()}
        reply = await self._transport.send(
            Request(method="POST", path=PREFIX + path, headers=headers, body=msgspec.json.encode(body))
        )
        if reply.status != OK:
            raise refusal(reply.status, reply.body[:500].decode(errors="replace"))
        try:
            return msgspec.json.decode(reply.body, type=kind)
        except ValueError as error:
            raise Unavailable(f"{path}: {error}") from None

    async def _headers(self) -> Mapping[str, str]:
        if isinstance(self._credential, TokenSource):
            return bearer_header(await self._credential.token())
        return self._credential.own_headers(self._base_url)

    async def close(self) -> None:
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def context_members(context: Mapping[str, object]) -> dict[str, object]:
    return {"context": context} if context else {}
