"""What the management API adds to permission endpoints: search, lists and Idempotency-Key (R9)."""

from collections.abc import Mapping
from functools import cache
from typing import Final

from msgspec import Struct

from gatehouse.admin.idempotency import Idempotency
from gatehouse.app.services import Services
from gatehouse.web.api.permissions.idempotency import IdempotentCreates
from gatehouse.web.api.permissions.listing import Cursors, ListedPage, Lists, PageQuery, ReadPage
from gatehouse.web.http.routing import Endpoint

IDEMPOTENT: Final = frozenset(
    f"permissions.{name}"
    for name in ("user", "application", "publish", "group", "client", "service_account", "access_key", "webhook")
)


class ListAction(Struct, frozen=True, kw_only=True):
    method: str  # of ListReader
    filters: frozenset[str] = frozenset()
    action: str = "list"


LIST_ACTIONS: Final[Mapping[str, ListAction]] = {
    "permissions.user": ListAction(
        method="people",
        filters=frozenset({"login", "tag", "registered_since", "blocked"}),
        action="search",
    ),
    "permissions.application": ListAction(method="applications", filters=frozenset({"project_id"})),
    "permissions.project": ListAction(method="projects"),
    "permissions.group": ListAction(method="groups", filters=frozenset({"project_id"})),
    "permissions.client": ListAction(method="clients"),
    "permissions.service_account": ListAction(method="service_accounts", filters=frozenset({"project_id"})),
    "permissions.activity": ListAction(
        method="activity", filters=frozenset({"event", "actor", "subject", "since", "until"})
    ),
}


def add_management(services: Services, endpoints: list[Endpoint]) -> list[Endpoint]:
    """Return the endpoints with the actions and the header that they gain."""
    idempotency = Idempotency(store=services.storage.idempotency, sealer=services.core.masters, clock=services.clock)
    creates = IdempotentCreates(idempotency=idempotency, authenticator=services.permissions.authenticator)
    lists = Lists(
        cursors=Cursors(masters=services.core.masters, clock=services.clock),
        authenticator=services.permissions.authenticator,
    )
    readers = page_readers(services)
    found = []
    for endpoint in endpoints:
        listed = LIST_ACTIONS.get(endpoint.name)
        with_list = (
            endpoint
            if listed is None
            else lists.add(endpoint, readers[listed.method], filters=listed.filters, action=listed.action)
        )
        found.append(creates.wrap(with_list) if endpoint.name in IDEMPOTENT else with_list)
    return found


def page_readers(services: Services) -> Mapping[str, ReadPage]:
    """Return the readers by name, loaded at the first request."""

    @cache
    def load() -> Mapping[str, ReadPage]:
        from gatehouse.app.services.listing import list_readers  # noqa: PLC0415 - few processes use it

        return list_readers(services)

    def reader(name: str) -> ReadPage:
        async def read_page(page: PageQuery) -> ListedPage:
            return await load()[name](page)

        return read_page

    return {action.method: reader(action.method) for action in LIST_ACTIONS.values()}
