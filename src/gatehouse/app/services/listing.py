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
from gatehouse.web.api.permissions.listing import ListedPage, PageQuery, ReadPage, keyed_page
from gatehouse.web.api.permissions.lookups import activity_entry
from gatehouse.web.api.permissions.user_admin import UserName
from gatehouse.web.api.permissions.user_records import user_entry


class ListReader:
    """Reads one page of each list, with what its caller may see."""

    def __init__(self, services: Services) -> None:
        runner = services.storage.runner
        self._services = services
        self._store = ListingStore(runner)
        self._people = PeopleSearchStore(runner)
        self._activity = ActivityStore(runner)

    async def applications(self, page: PageQuery) -> ListedPage:
        who, after = await self._readable(page), FIRST_NUMBER if page.position is None else page.position
        rows = await self._store.applications(who, page.query, page.filters.project_id, after, page.limit)
        return keyed_page(rows, "application_id", page.limit)

    async def projects(self, page: PageQuery) -> ListedPage:
        rows = await self._store.projects(await self._listable(page), page.query, page.position or "", page.limit)
        return keyed_page(rows, "id", page.limit)

    async def groups(self, page: PageQuery) -> ListedPage:
        who, project = await self._listable(page), page.filters.project_id
        rows = await self._store.groups(who, page.query, project, page.position or "", page.limit)
        return keyed_page(rows, "id", page.limit)

    async def clients(self, page: PageQuery) -> ListedPage:
        """Clients of the request's application; administrators list those of all."""
        authenticated = page.authenticated
        if authenticated.application_id is not None:
            authenticated.require_application(Operation.APPLICATION_SAVE)
        else:
            require_operation(authenticated.rights, Operation.ADMINISTER)
        about = authenticated.application_id or ANY_APPLICATION
        rows = await self._store.clients(page.query, about, page.position or "", page.limit)
        return keyed_page(rows, "client_id", page.limit)

    async def service_accounts(self, page: PageQuery) -> ListedPage:
        """Service accounts of one project; administrators list those of all."""
        project = page.filters.project_id
        operation = Operation.SERVICE_ACCOUNTS if project else Operation.ADMINISTER
        require_operation(page.authenticated.rights, operation, GuardTarget(project_id=project or None))
        rows = await self._store.service_accounts(page.query, project, page.position or "", page.limit)
        return keyed_page(rows, "user_id", page.limit)

    async def activity(self, page: PageQuery) -> ListedPage:
        """Audit records that the console shows the caller, the newest first; a page may be short."""
        given = page.filters
        visibility = await self._services.admin.visibility_loader.load(page.authenticated.rights)
        subjects = await visible_audit_log(self._services).subjects(page.authenticated, visibility, given.subject)
        found = await self._activity.activity(
            ActivityFilter(
                events=(given.event,) if given.event else (),
                actor=given.actor,
                subject=given.subject,
                subjects=subjects,
                application_id=page.authenticated.application_id or ANY_APPLICATION,
                text=page.query,
                since=parse_time(given.since, "since"),
                until=parse_time(given.until, "until") or FOREVER,
                after=None if page.position is None else ActivityCursor(**page.position),
            ),
            page.limit,
        )
        records = [activity_entry(redact_record(record, page.authenticated.rights)) for record in found.records]
        return ListedPage(records=records, position=None if found.after is None else asdict(found.after))

    async def people(self, page: PageQuery) -> ListedPage:
        """Everyone for administrators; people with a record in the application for its readers, by nick only."""
        given, authenticated = page.filters, page.authenticated
        administers = is_open(authenticated.rights, Operation.ADMINISTER)
        if not administers:
            refuse_about_others(authenticated)
            if given.given:
                raise NoRight("filters are for administrators")
        found = await self._people.search(
            PeopleQuestion(
                text=page.query,
                login=given.login,
                tag=given.tag,
                since=parse_time(given.registered_since, "registered_since"),
                blocked=given.blocked,
                application_id=authenticated.application_id
                if administers
                else authenticated.named_application().application.application_id,
            ),
            None if page.position is None else PersonPosition(**page.position),
            page.limit,
        )
        records = [
            user_entry(user, self._services.base_url) if administers else user_name(user) for user in found.users
        ]
        return ListedPage(records=records, position=None if found.after is None else asdict(found.after))

    async def _readable(self, page: PageQuery) -> Listable:
        """Return what the caller may list, with only those applications that `get` answers.

        The console shows more: someone who may do anything to an application finds it there.
        """
        who, caller = await self._listable(page), page.authenticated.caller
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

    async def _listable(self, page: PageQuery) -> Listable:
        rights = page.authenticated.rights
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
