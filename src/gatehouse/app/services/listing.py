"""Pages of search and lists over the API; loaded at the first use, see api_endpoints.py."""

from collections.abc import Mapping
from datetime import UTC, datetime

from msgspec.structs import asdict, replace

from gatehouse.accounts.model import User
from gatehouse.admin.activity import FOREVER, ActivityCursor, ActivityFilter, ActivityStore
from gatehouse.admin.listings import ANY_APPLICATION, FIRST_NUMBER, Listable, ListingStore, listable
from gatehouse.admin.people_search import PeopleQuestion, PeopleSearchStore, PersonPosition
from gatehouse.admin.visible_audit_log import redact_record
from gatehouse.app.services import Services
from gatehouse.app.services.activity import visible_audit_log
from gatehouse.permissions.errors import Malformed, NoRight
from gatehouse.permissions.questions.check import refuse_about_others
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open, require_operation
from gatehouse.web.api.permissions.listing import ListAsk, ListedPage, ReadPage, keyed_page
from gatehouse.web.api.permissions.lookups import activity_entry
from gatehouse.web.api.permissions.user_admin import UserName
from gatehouse.web.api.permissions.users import user_entry


class ListReader:
    """Reads one page of each list, with what its caller may see."""

    def __init__(self, services: Services) -> None:
        runner = services.storage.runner
        self._services = services
        self._store = ListingStore(runner)
        self._people = PeopleSearchStore(runner)
        self._activity = ActivityStore(runner)

    async def applications(self, ask: ListAsk) -> ListedPage:
        who, after = await self._readable(ask), FIRST_NUMBER if ask.position is None else ask.position
        rows = await self._store.applications(who, ask.query, ask.filters.project_id, after, ask.limit)
        return keyed_page(rows, "application_id", ask.limit)

    async def projects(self, ask: ListAsk) -> ListedPage:
        rows = await self._store.projects(await self._listable(ask), ask.query, ask.position or "", ask.limit)
        return keyed_page(rows, "id", ask.limit)

    async def groups(self, ask: ListAsk) -> ListedPage:
        who, project = await self._listable(ask), ask.filters.project_id
        rows = await self._store.groups(who, ask.query, project, ask.position or "", ask.limit)
        return keyed_page(rows, "id", ask.limit)

    async def clients(self, ask: ListAsk) -> ListedPage:
        """Clients of the request's application; administrators list those of all."""
        visit = ask.visit
        if visit.application_id is not None:
            visit.require_application(Operation.APPLICATION_SAVE)
        else:
            require_operation(visit.rights, Operation.ADMINISTER)
        about = visit.application_id or ANY_APPLICATION
        rows = await self._store.clients(ask.query, about, ask.position or "", ask.limit)
        return keyed_page(rows, "client_id", ask.limit)

    async def service_accounts(self, ask: ListAsk) -> ListedPage:
        """Service accounts of one project; administrators list those of all."""
        project = ask.filters.project_id
        operation = Operation.SERVICE_ACCOUNTS if project else Operation.ADMINISTER
        require_operation(ask.visit.rights, operation, GuardTarget(project_id=project or None))
        rows = await self._store.service_accounts(ask.query, project, ask.position or "", ask.limit)
        return keyed_page(rows, "user_id", ask.limit)

    async def activity(self, ask: ListAsk) -> ListedPage:
        """Audit records that the console shows the caller, the newest first; a page may be short."""
        given = ask.filters
        visibility = await self._services.admin.visibility_loader.load(ask.visit.rights)
        subjects = await visible_audit_log(self._services).subjects(ask.visit, visibility, given.subject)
        found = await self._activity.activity(
            ActivityFilter(
                events=(given.event,) if given.event else (),
                actor=given.actor,
                subject=given.subject,
                subjects=subjects,
                application_id=ask.visit.application_id or ANY_APPLICATION,
                text=ask.query,
                since=parse_time(given.since, "since"),
                until=parse_time(given.until, "until") or FOREVER,
                after=None if ask.position is None else ActivityCursor(**ask.position),
            ),
            ask.limit,
        )
        records = [activity_entry(redact_record(record, ask.visit.rights)) for record in found.records]
        return ListedPage(records=records, position=None if found.after is None else asdict(found.after))

    async def people(self, ask: ListAsk) -> ListedPage:
        """Everyone for administrators; people with a record in the application for its readers, by nick only."""
        given, visit = ask.filters, ask.visit
        administers = is_open(visit.rights, Operation.ADMINISTER)
        if not administers:
            refuse_about_others(visit)
            if given.given:
                raise NoRight("filters are for administrators")
        found = await self._people.search(
            PeopleQuestion(
                text=ask.query,
                login=given.login,
                tag=given.tag,
                since=parse_time(given.registered_since, "registered_since"),
                blocked=given.blocked,
                application_id=visit.application_id
                if administers
                else visit.named_application().application.application_id,
            ),
            None if ask.position is None else PersonPosition(**ask.position),
            ask.limit,
        )
        records = [
            user_entry(user, self._services.base_url) if administers else user_name(user) for user in found.users
        ]
        return ListedPage(records=records, position=None if found.after is None else asdict(found.after))

    async def _readable(self, ask: ListAsk) -> Listable:
        """Return what the caller may list, with only those applications that `get` answers.

        The console shows more: someone who may do anything to an application finds it there.
        """
        who, caller = await self._listable(ask), ask.visit.caller
        if who.everything or caller.facts is None:
            return who
        now = self._services.clock.now()
        banned = frozenset(ban.application_id for ban in caller.facts.bans if ban.is_active(now))
        in_each = await self._services.permissions.authenticator.attach_rights_in_each(caller, who.applications)
        readable = [
            application_id
            for application_id, each in in_each.items()
            if is_open(each.rights, Operation.APPLICATION_GET, each.target)
        ]
        return replace(who, applications=readable, banned_from=banned)

    async def _listable(self, ask: ListAsk) -> Listable:
        rights = ask.visit.rights
        return listable(rights, await self._services.admin.visibility_loader.load(rights))


def list_readers(services: Services) -> Mapping[str, ReadPage]:
    reader = ListReader(services)
    return {
        "people": reader.people,
        "applications": reader.applications,
        "projects": reader.projects,
        "groups": reader.groups,
        "clients": reader.clients,
        "service_accounts": reader.service_accounts,
        "activity": reader.activity,
    }


def user_name(user: User) -> UserName:
    return UserName(user_id=user.user_id, nick=user.nick)


def parse_time(text: str, name: str) -> int:
    """Parse a date or time in ISO 8601, in UTC unless it says otherwise; 0 for an empty text. Raises Malformed."""
    if not text:
        return 0
    try:
        at = datetime.fromisoformat(text)
        return max(0, int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()))
    except (ValueError, OverflowError):
        raise Malformed(f"data.filters.{name}: must be a date or time such as 2026-01-31T12:00:00Z") from None
