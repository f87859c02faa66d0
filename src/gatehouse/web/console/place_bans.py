"""Bans from one application or project, for those who may ban there: the list, ban, and lift (R10)."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final

import msgspec
from markupsafe import Markup
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.bans.model import MAX_PUBLIC_TEXT, MAX_REASON, Ban, BanNotFound, BanScope, BanState
from gatehouse.admin.names import NamedPerson, NameStore
from gatehouse.admin.people import PeopleListStore
from gatehouse.admin.people_search import PeopleQuestion, PeopleSearchStore
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.commands.bans import BanCommands
from gatehouse.permissions.commands.memberships import MembershipCommands
from gatehouse.permissions.documents.grammar import USER_ID
from gatehouse.permissions.questions.check import reads_permissions
from gatehouse.permissions.rights.guard import GuardTarget, Operation, require_operation
from gatehouse.web.api.permissions.bans import BanEntry, ban_entry
from gatehouse.web.console.applications.head import ApplicationHead, application_head
from gatehouse.web.console.combobox import ComboboxKind, ComboboxOption, LookupFailed
from gatehouse.web.console.edit_screen import EditScreen, FormDraft, Saved
from gatehouse.web.console.forms import hidden_fields
from gatehouse.web.console.frame import ApiCall, Undo
from gatehouse.web.console.impact import ReviewContext
from gatehouse.web.console.list_screen import CsvFile
from gatehouse.web.console.lookup import MAX_OPTIONS, FoundNames, Lookup, PersonFinder, person_option
from gatehouse.web.console.person_assign import require_field
from gatehouse.web.console.person_bans import COLUMNS, BanTextForm, ban_consequences
from gatehouse.web.console.projects.members import users_in
from gatehouse.web.console.projects.project import ProjectHead, ProjectLoader, project_head
from gatehouse.web.console.view import AdminRequest, Confirmation, ConsoleRoute, ConsoleView
from gatehouse.web.http.parse import read_query
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

PERSON: Final = {"user_id": ComboboxKind.PERSON}
MAX_SHOWN: Final = 200  # of the newest bans


class PlaceBanForm(BanTextForm, frozen=True, kw_only=True):
    user_id: str = ""


class LiftQuery(msgspec.Struct, frozen=True, kw_only=True):
    user_id: str = ""


class LiftForm(CsrfForm, frozen=True, kw_only=True):
    user_id: str = ""


FindPeople = Callable[[str], Awaitable[FoundNames]]
FindNick = Callable[[str], Awaitable[str | None]]


class BanPlace(msgspec.Struct, frozen=True, kw_only=True):
    """What people are banned from here, and how far the reader knows its people."""

    scope: BanScope
    head: ApplicationHead | ProjectHead
    name: str
    find_people: FindPeople | None = None  # by a part of their names; None: the reader must know the ID
    find_nick: FindNick | None = None  # by ID, of those whom the reader may know; None: the reader sees IDs only

    @property
    def path(self) -> str:
        return f"{self.head.path}/bans"


LoadPlace = Callable[[Request, AdminRequest], Awaitable[BanPlace]]


class PlaceBan(msgspec.Struct, frozen=True, kw_only=True):
    ban: Ban
    state: BanState
    nick: str  # empty where the reader sees IDs only
    author: str
    lifted_by: str


class PlaceBansContext(PageContext, frozen=True, kw_only=True):
    template = "console/applications/bans.html"

    head: ApplicationHead | ProjectHead
    place: str
    bans: Sequence[PlaceBan]
    is_cut: bool
    searches_everyone: bool
    finds_names: bool
    picked: dict[str, ComboboxOption]
    call: ApiCall
    max_text: int = MAX_PUBLIC_TEXT
    max_reason: int = MAX_REASON


class ProjectBansContext(PlaceBansContext, frozen=True, kw_only=True):
    template = "console/projects/bans.html"


class PlaceBanScreens(msgspec.Struct, frozen=True, kw_only=True):
    """`root`: the path of the pages. `load` raises NoRight."""

    root: str
    load: LoadPlace
    context: type[PlaceBansContext]
    bans: BanCommands
    lists: PeopleListStore
    names: NameStore
    lookup: Lookup
    view: ConsoleView
    clock: Clock

    async def _page(
        self, request: Request, admin: AdminRequest, place: BanPlace, draft: FormDraft[PlaceBanForm]
    ) -> PlaceBansContext:
        found = await self.bans.list(admin.actor, scope=place.scope, limit=MAX_SHOWN + 1)
        shown, now = found[:MAX_SHOWN], self.clock.now()
        authors = {one for ban in shown for one in (ban.author, ban.lifted_by)}
        banned = {ban.user_id for ban in shown} if place.find_nick is not None else set()
        named = await self.names.people_by_id(authors | banned)
        names = {user_id: one.nick for user_id, one in named.items()}
        asked = read_query(request, LiftQuery).user_id if request.method == "GET" else ""
        form = replace(draft.form, user_id=asked) if asked else draft.form
        return self.context(
            head=place.head,
            place=place.name,
            bans=[
                PlaceBan(
                    ban=ban,
                    state=ban.state(now),
                    nick=names.get(ban.user_id, "") if ban.user_id in banned else "",
                    author=names.get(ban.author) or ban.author,
                    lifted_by=names.get(ban.lifted_by) or ban.lifted_by,
                )
                for ban in shown
            ],
            is_cut=len(found) > MAX_SHOWN,
            searches_everyone=admin.rights.administers,
            finds_names=place.find_people is not None,
            picked=dict(await self.lookup.describe(admin, form, PERSON)) if admin.rights.administers else {},
            call=ApiCall(
                path="user/ban",
                body={"action": "list", **scope_fields(place.scope)},
                record=[ban_entry(ban, now) for ban in shown],
            ),
        )

    def _file(self, page: PlaceBansContext) -> CsvFile[BanEntry]:
        now = self.clock.now()
        return CsvFile(name="bans", columns=COLUMNS, rows=[ban_entry(row.ban, now) for row in page.bans])

    async def _review(
        self, request: Request, admin: AdminRequest, place: BanPlace, form: PlaceBanForm
    ) -> ReviewContext:
        person = await self._find_person(admin, place, form.user_id)
        form = replace(form, user_id=person.user_id)
        t, now = self.view.words(request), self.clock.now()
        checked = await self.bans.check(admin.actor, form.user_id, place.scope, form.draft(admin.zone, now))
        reach = await self.lists.ban_reach(form.user_id, place.scope, now)
        return ReviewContext(
            name=person.nick or (place.find_nick and await place.find_nick(person.user_id)) or person.user_id,
            back=place.path,
            action=place.path,
            fields=hidden_fields(form),
            consequences=[
                Markup("{}: <strong>{}</strong>").format(t("bans.scope"), place.name),
                *ban_consequences(t, form, checked, reach, admin.zone),
            ],
            impacts=(),
            question="ban",
            is_danger=True,
        )

    async def _save(self, _request: Request, admin: AdminRequest, place: BanPlace, form: PlaceBanForm) -> Saved:
        user_id = (await self._find_person(admin, place, form.user_id)).user_id
        replaced = await self.bans.list(
            admin.actor, user_id=user_id, scope=place.scope, state=BanState.ACTIVE, limit=1
        )
        await self.bans.save(admin.actor, user_id, place.scope, form.draft(admin.zone, self.clock.now()))
        undo = None if replaced else Undo(path=f"{place.path}/lift", fields=[("user_id", user_id)])
        return Saved(address=place.path, message="person_banned", undo=undo)

    async def _find_person(self, admin: AdminRequest, place: BanPlace, typed: str) -> NamedPerson:
        """Return the person, without a nick for an ID; the ban itself tells those who may know if they exist."""
        typed = typed.strip()
        require_field("user_id", typed)
        if admin.rights.administers:
            resolved = await self.lookup.resolve(admin, LiftForm(user_id=typed), PERSON)
            return NamedPerson(user_id=resolved.user_id, nick="", login="")
        if USER_ID.fullmatch(typed):
            return NamedPerson(user_id=typed, nick="", login="")
        found = () if place.find_people is None else (await place.find_people(typed)).people
        if len(found) == 1:
            return found[0]
        options = [person_option(one) for one in found]
        raise LookupFailed(ComboboxKind.PERSON, "user_id", typed, options, is_ambiguous=len(found) > 1)

    async def confirm_lift(self, request: Request, admin: AdminRequest) -> Confirmation:
        place, t = await self.load(request, admin), self.view.words(request)
        user_id = read_query(request, LiftQuery).user_id
        found = await self.bans.list(admin.actor, user_id=user_id, scope=place.scope, state=BanState.ACTIVE, limit=1)
        if not found:
            raise BanNotFound
        named = await self.names.people_by_id([user_id]) if place.find_nick is not None else {}
        nick = named[user_id].nick if user_id in named else user_id
        return Confirmation(
            title=t("bans.lift_title", nick=nick, scope=place.name),
            trail=[(place.name, place.path)],
            text=found[0].public_text,
            is_destructive=False,
            hidden=[("user_id", user_id)],
            button=t("bans.lift"),
        )

    async def lift(self, request: Request, admin: AdminRequest, form: LiftForm) -> Response:
        place = await self.load(request, admin)
        await self.bans.lift(admin.actor, form.user_id, place.scope)
        return self.view.redirect_with_flash(place.path, "ban_lifted")

    def routes(self) -> Sequence[ConsoleRoute]:
        bans = EditScreen(
            view=self.view,
            path=self.root,
            form=PlaceBanForm,
            load=self.load,
            page=self._page,
            review=self._review,
            save=self._save,
            file=self._file,
            fresh=True,
        )
        return [
            *bans.routes(),
            *self.view.confirmation(f"{self.root}/lift", LiftForm, self.confirm_lift, self.lift),
        ]


def scope_fields(scope: BanScope) -> dict[str, object]:
    return {"application_id": scope.application_id} if scope.application_id else {"project_id": scope.project_id}


async def nick_of(names: NameStore, user_id: str) -> str | None:
    named = (await names.people_by_id([user_id])).get(user_id)
    return None if named is None else named.nick


def application_place(people: PeopleSearchStore, names: NameStore) -> LoadPlace:
    async def load(request: Request, admin: AdminRequest) -> BanPlace:  # noqa: ARG001
        model = admin.authenticated.require_application(Operation.BAN_FROM_APPLICATION)
        application = model.application
        reads_people = admin.rights.administers or reads_permissions(admin.authenticated)

        async def find(typed: str) -> FoundNames:
            question = PeopleQuestion(text=typed, application_id=application.application_id)
            found = await people.search(question, None, MAX_OPTIONS)
            named = [NamedPerson(user_id=user.user_id, nick=user.nick, login="") for user in found.users]
            return FoundNames(people=named, searched=found.searched)  # readers of an application see no addresses

        async def find_nick(user_id: str) -> str | None:
            if admin.rights.administers:
                return await nick_of(names, user_id)
            return await people.nick_in_application(application.application_id, user_id)

        return BanPlace(
            scope=BanScope(application_id=application.application_id),
            head=application_head(admin, model, "bans"),
            name=application.name,
            find_people=find if reads_people else None,
            find_nick=find_nick if reads_people else None,
        )

    return load


def project_place(
    loader: ProjectLoader, memberships: MembershipCommands, finder: PersonFinder, names: NameStore
) -> LoadPlace:
    async def load(request: Request, admin: AdminRequest) -> BanPlace:
        project = (await loader.load(request, admin)).project
        require_operation(admin.rights, Operation.BAN_FROM_PROJECT, GuardTarget(project_id=project.project_id))

        async def find(typed: str) -> FoundNames:
            return await finder.find(admin, typed, known_ids=await member_ids(), by_email=True)

        async def find_nick(user_id: str) -> str | None:
            may_know = admin.rights.administers or user_id in await member_ids()
            return await nick_of(names, user_id) if may_know else None

        async def member_ids() -> Collection[str]:
            held = await memberships.get(admin.actor, admin.authenticated.central, project.project_id)
            return users_in(held).keys()

        return BanPlace(
            scope=BanScope(project_id=project.project_id),
            head=project_head(admin, project, "bans"),
            name=project.title,
            find_people=find,
            find_nick=find_nick,
        )

    return load
