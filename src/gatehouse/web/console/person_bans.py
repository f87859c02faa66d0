"""Bans: those of one person, with ban and lift, and the list of all."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec
from markupsafe import Markup
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.bans.model import (
    INSTALLATION,
    MAX_PUBLIC_TEXT,
    MAX_REASON,
    Ban,
    BanNotFound,
    BanScope,
    BanState,
    UserBan,
)
from gatehouse.accounts.model import CENTRAL_APPLICATION, User
from gatehouse.admin.names import NamedApplication, NameStore
from gatehouse.admin.own_permissions import OwnPermissionsLoader
from gatehouse.admin.people import BanReach
from gatehouse.kernel.background import run_off_loop
from gatehouse.permissions.commands.bans import BanCommands, BanDraft, CheckedBan
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.evaluation.loader import EvaluationInput, PermissionLoader
from gatehouse.permissions.questions.simulate import Forecast, compare_evaluations
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import Operation, require_operation
from gatehouse.web.api.permissions.bans import BanEntry, ban_entry
from gatehouse.web.console.combobox import ComboboxKind, ComboboxOption
from gatehouse.web.console.edit_screen import EditScreen, FormDraft, Saved
from gatehouse.web.console.ends import parse_end
from gatehouse.web.console.forms import ReviewedForm, form_text, hidden_fields
from gatehouse.web.console.frame import ApiCall, Undo
from gatehouse.web.console.impact import MAX_APPLICATIONS, Impact, ReviewContext, describe_impact
from gatehouse.web.console.list_screen import CsvFile, ListQuery, ListScreen
from gatehouse.web.console.lookup import Lookup
from gatehouse.web.console.paths import ConsoleEntry, is_console_page
from gatehouse.web.console.person import ENTRY, PersonHead, PersonLoader
from gatehouse.web.console.person_assign import require_field
from gatehouse.web.console.remedies import link_to
from gatehouse.web.console.view import (
    EXPECTED_ERRORS,
    AdminRequest,
    Confirmation,
    ConsoleRoute,
    FormProblem,
    problem_from,
)
from gatehouse.web.http.parse import read_query
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm
from gatehouse.web.pages.template_filters import exact_time
from gatehouse.web.pages.translations import Translator

LIST_PATH: Final = f"{ENTRY.path}/bans"
FIELDS: Final = {"application_id": ComboboxKind.APPLICATION, "project_id": ComboboxKind.PROJECT}
SCOPES: Final[Mapping[str, tuple[str, ...]]] = {  # the fields of each choice
    "application": ("application_id",),
    "project": ("project_id",),
    "everything": (),
}
MAX_CHOICES: Final = 6  # applications that are offered by name
PAGE_ROWS: Final = 50
FILE_ROWS: Final = 1_000  # read at a time
MAX_HISTORY: Final = 200  # bans of one person that its page shows
COLUMNS: Final = {
    "ban_id": lambda one: one.ban_id,
    "user_id": lambda one: one.user_id,
    "application_id": lambda one: one.application_id or "",
    "project_id": lambda one: one.project_id,
    "state": lambda one: one.state.value,
    "until": lambda one: one.until or "",
    "public_text": lambda one: one.public_text,
    "reason": lambda one: one.reason,
    "author": lambda one: one.author,
    "created": lambda one: one.created,
    "lifted": lambda one: one.lifted,
    "lifted_by": lambda one: one.lifted_by,
    "devices": lambda one: one.devices or "",
    "source": lambda one: one.source,
    "erased": lambda one: one.erased,
}


class BanTextForm(ReviewedForm, frozen=True, kw_only=True):
    """A ban, whatever it is from."""

    public_text: str = ""
    reason: str = ""
    end: str = ""
    until: str = ""  # a day, or a day and a time
    device: str = ""  # "yes": also for every account on the person's devices
    confirm: str = ""  # "yes": even if many accounts used one of them

    def draft(self, zone: str, now: int) -> BanDraft:
        return BanDraft(
            public_text=self.public_text.strip(),
            reason=form_text(self.reason),
            until=parse_end(self.end, self.until, zone=zone, now=now),
            device=self.device == "yes",
            confirm=self.confirm == "yes",
        )


class BanForm(BanTextForm, frozen=True, kw_only=True):
    scope: str = ""  # an application's ID, or a word of SCOPES
    application_id: str = ""
    project_id: str = ""

    def with_scope(self) -> "BanForm":
        """The form with the one field that its scope needs. Raises Malformed."""
        if self.scope.isdigit():
            return replace(self, application_id=self.scope, project_id="")
        kept = SCOPES.get(self.scope)
        if kept is None:
            if self.application_id.strip() or self.project_id.strip():
                return self
            raise Malformed("scope: choose what the person is banned from").on_screen("ban_scope")
        for name in kept:
            require_field(name, getattr(self, name))
        return replace(self, **{name: "" for name in FIELDS if name not in kept})


class LiftBanQuery(msgspec.Struct, frozen=True, kw_only=True):
    application_id: str = ""
    project_id: str = ""
    back: str = ""


class LiftBanForm(CsrfForm, frozen=True, kw_only=True):
    application_id: str = ""
    project_id: str = ""
    back: str = ""  # the page that asked; it is shown again after the ban is lifted


class BanQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A link to the form with its scope."""

    scope: str = ""


class BanRow(msgspec.Struct, frozen=True, kw_only=True):
    """A ban with names in place of IDs."""

    ban: Ban
    state: BanState
    scope: Markup
    author: str
    lifted_by: str

    @property
    def scope_label(self) -> str:
        return self.scope.striptags()


class BanListQuery(ListQuery, frozen=True, kw_only=True):
    state: str = BanState.ACTIVE.value
    application_id: str = ""
    project_id: str = ""
    before: str = ""

    @property
    def state_filter(self) -> BanState | None:
        return BanState(self.state) if self.state in list(BanState) else None


class PersonBansContext(PageContext, frozen=True, kw_only=True):
    template = "console/people/person_bans.html"

    head: PersonHead
    bans: Sequence[BanRow]
    picked: Mapping[str, ComboboxOption]
    applications: Sequence[NamedApplication]  # that the person uses
    asked: str = ""  # the scope of the link that led here
    call: ApiCall
    max_text: int = MAX_PUBLIC_TEXT
    max_reason: int = MAX_REASON


class BanListContext(PageContext, frozen=True, kw_only=True):
    template = "console/people/bans.html"

    bans: Sequence[BanRow]
    nicks: Mapping[str, str]  # by user ID
    picked: Mapping[str, ComboboxOption]
    problem: FormProblem | None = None
    after: str = ""  # of the next page
    states: Sequence[BanState] = tuple(BanState)


class PersonBanScreens:
    def __init__(
        self,
        loader: PersonLoader,
        *,
        bans: BanCommands,
        names: NameStore,
        permission_loader: PermissionLoader,
        own_permissions: OwnPermissionsLoader,
        lookup: Lookup,
    ) -> None:
        self._loader = loader
        self._permission_loader = permission_loader
        self._own_permissions = own_permissions
        self._view = loader.view
        self._clock = loader.clock
        self._bans = bans
        self._names = names
        self._lookup = lookup

    async def _load(self, request: Request, admin: AdminRequest) -> User:
        return await self._loader.people_admin.person(admin.actor, request.path_params["user_id"])

    async def _save(self, _request: Request, admin: AdminRequest, user: User, form: BanForm) -> Saved:
        form = await self._lookup.resolve(admin, form.with_scope(), FIELDS)
        scope = parse_scope(form)
        replaced = await self._bans.list(
            admin.actor, user_id=user.user_id, scope=scope, state=BanState.ACTIVE, limit=1
        )
        await self._bans.save(admin.actor, user.user_id, scope, form.draft(admin.zone, self._clock.now()))
        path = f"{ENTRY.path}/{user.user_id}/bans"
        fields = [("application_id", form.application_id), ("project_id", form.project_id)]
        undo = None if replaced else Undo(path=f"{path}/lift", fields=fields)  # a replaced ban would be lifted too
        return Saved(address=path, message="person_banned", undo=undo)

    async def _review(self, request: Request, admin: AdminRequest, _user: User, form: BanForm) -> ReviewContext:
        """What the ban takes away."""
        form = await self._lookup.resolve(admin, form.with_scope(), FIELDS)
        user_id: str = request.path_params["user_id"]
        draft = form.draft(admin.zone, self._clock.now())
        checked = await self._bans.check(admin.actor, user_id, parse_scope(form), draft)
        user, head = await self._loader.load(request, admin, "access")
        scope, t = checked.target.scope, self._view.words(request)
        reach = await self._loader.lists.ban_reach(user.user_id, scope, self._clock.now())
        path = f"{head.path}/bans"
        return ReviewContext(
            name=user.nick,
            back=head.path,
            action=path,
            fields=hidden_fields(form),
            consequences=[
                Markup("{}: <strong>{}</strong>").format(t("bans.scope"), await self._scope_name(t, admin, form)),
                *ban_consequences(t, form, checked, reach, admin.zone),
            ],
            impacts=await self._lost_permissions(user, scope),
            question="ban",
            is_danger=True,
        )

    async def _scope_name(self, t: Translator, admin: AdminRequest, form: BanForm) -> str:
        picked = await self._lookup.describe(admin, form, FIELDS)
        return next((one.label for one in picked.values()), t("bans.everything"))

    async def _lost_permissions(self, user: User, scope: BanScope) -> Sequence[Impact]:
        """What the person loses in each application that the ban covers, as if it were already stored."""
        ban = UserBan(ban_id="", application_id=scope.application_id, project_id=scope.project_id)
        return await self._changed_permissions(user, scope, lambda bans: (*bans, ban))

    async def _regained_permissions(self, user: User, scope: BanScope) -> Sequence[Impact]:
        """What the person has again without the ban of that scope."""
        place = scope.application_id, scope.project_id
        return await self._changed_permissions(
            user, scope, lambda bans: tuple(ban for ban in bans if (ban.application_id, ban.project_id) != place)
        )

    async def _changed_permissions(
        self, user: User, scope: BanScope, change: Callable[[tuple[UserBan, ...]], tuple[UserBan, ...]]
    ) -> Sequence[Impact]:
        user_id = user.user_id
        named = {one.application_id: one.name for one in await self._own_permissions.find_applications(user_id, None)}
        among = {scope.application_id} if scope.application_id else named.keys()
        facts = await self._permission_loader.load_facts(user_id, among)
        if facts is None:
            return ()
        before = await self._permission_loader.load_input(facts)
        after = replace(before, facts=replace(before.facts, bans=change(before.facts.bans)))
        impacts = [await self._lost_in(user, before, after, application_id) for application_id in before.models]
        lost = [one for one in impacts if not one.is_nothing]
        return sorted(lost, key=lambda one: (one.application_id == CENTRAL_APPLICATION, one.application.lower()))[
            :MAX_APPLICATIONS
        ]

    async def _lost_in(
        self, user: User, before: EvaluationInput, after: EvaluationInput, application_id: int
    ) -> Impact:
        held = await self._permission_loader.evaluate(before, application_id, None)
        left = await self._permission_loader.evaluate(after, application_id, None)
        now = self._clock.now()
        effect = await run_off_loop(held.work, partial(compare_evaluations, user.user_id, held, left, now=now))
        return describe_impact(
            Forecast(effects=[] if effect.is_none else [effect]),
            {user.user_id: user.nick},
            application_id=application_id,
            application=before.models[application_id].application.name,
        )

    async def confirm_lift(self, request: Request, admin: AdminRequest) -> Confirmation:
        """What the person may do again."""
        form, t = read_query(request, LiftBanQuery), self._view.words(request)
        user, head = await self._loader.load(request, admin, "access")
        scope = parse_scope(form)
        found = await self._bans.list(admin.actor, user_id=user.user_id, scope=scope, state=BanState.ACTIVE, limit=1)
        if not found:
            raise BanNotFound
        [row] = await self._rows(admin, t, found)
        hidden = [("application_id", form.application_id), ("project_id", form.project_id), ("back", form.back)]
        back = form.back if is_console_page(form.back) else f"{head.path}/bans"
        return Confirmation(
            title=t("bans.lift_title", nick=head.nick, scope=row.scope_label),
            trail=[(head.nick, back)],
            text=found[0].public_text,
            impacts=await self._regained_permissions(user, scope),
            is_destructive=False,
            hidden=[(name, value) for name, value in hidden if value],
            button=t("bans.lift"),
        )

    async def _rows(self, admin: AdminRequest, t: Translator, bans: Sequence[Ban]) -> Sequence[BanRow]:
        people = {one for ban in bans for one in (ban.author, ban.lifted_by)}
        names = {user_id: one.nick for user_id, one in (await self._names.people_by_id(people)).items()}
        scopes = {scope: await self._scope_link(t, admin, scope) for scope in {ban.scope for ban in bans}}
        now = self._clock.now()
        return [
            BanRow(
                ban=ban,
                state=ban.state(now),
                scope=scopes[ban.scope],
                author=names.get(ban.author) or ban.author,
                lifted_by=names.get(ban.lifted_by) or ban.lifted_by,
            )
            for ban in bans
        ]

    async def _scope_link(self, t: Translator, admin: AdminRequest, scope: BanScope) -> Markup:
        """What the ban is from, by its name."""
        if scope == INSTALLATION:
            return t("bans.everything")
        form = LiftBanForm(application_id=str(scope.application_id or ""), project_id=scope.project_id)
        picked = await self._lookup.describe(admin, form, FIELDS)
        entry = ConsoleEntry.APPLICATIONS if scope.application_id else ConsoleEntry.PROJECTS
        object_id = str(scope.application_id or scope.project_id)
        return link_to(f"{entry.path}/{object_id}", next((one.label for one in picked.values()), object_id))

    async def lift(self, request: Request, admin: AdminRequest, form: LiftBanForm) -> Response:
        user_id: str = request.path_params["user_id"]
        lifted = await self._bans.lift(admin.actor, user_id, parse_scope(form))
        path = LIST_PATH if lifted.erased_at else f"{ENTRY.path}/{user_id}/bans"
        path = form.back if is_console_page(form.back) else path
        return self._view.redirect_with_flash(path, "ban_lifted")

    async def _list(
        self, request: Request, admin: AdminRequest, typed: BanListQuery
    ) -> BanListContext | CsvFile[BanEntry]:
        require_operation(admin.rights, Operation.ADMINISTER)
        try:
            query = await self._lookup.resolve(admin, typed, FIELDS)
            scope = parse_scope(query) if query.application_id or query.project_id else None
        except EXPECTED_ERRORS as error:
            return await self._list_context(request, admin, typed, (), problem_from(error))
        if query.is_file:
            pages = self._all_pages(admin.actor, scope, query.state_filter)
            return CsvFile(name="bans", columns=COLUMNS, pages=pages)
        found = await self._bans.list(
            admin.actor, scope=scope, state=query.state_filter, before=query.before, limit=PAGE_ROWS + 1
        )
        return await self._list_context(request, admin, typed, found)

    async def _list_context(
        self,
        request: Request,
        admin: AdminRequest,
        query: BanListQuery,
        found: Sequence[Ban],
        problem: FormProblem | None = None,
    ) -> BanListContext:
        shown = found[:PAGE_ROWS]
        nicks = await self._names.people_by_id({ban.user_id for ban in shown})
        return BanListContext(
            bans=await self._rows(admin, self._view.words(request), shown),
            nicks={user_id: one.nick for user_id, one in nicks.items()},
            picked=await self._lookup.describe(admin, query, FIELDS),
            problem=problem,
            after=shown[-1].ban_id if len(found) > len(shown) else "",
        )

    async def _all_pages(
        self, actor: Actor, scope: BanScope | None, state: BanState | None
    ) -> AsyncIterator[Iterator[BanEntry]]:
        before, now = "", self._clock.now()
        while True:
            page = await self._bans.list(actor, scope=scope, state=state, before=before, limit=FILE_ROWS)
            yield (ban_entry(ban, now) for ban in page)
            if len(page) < FILE_ROWS:
                return
            before = page[-1].ban_id

    async def _page(
        self, request: Request, admin: AdminRequest, user: User, draft: FormDraft[BanForm]
    ) -> PersonBansContext:
        _, head = await self._loader.load(request, admin, "access")
        found: Sequence[Ban] = await self._bans.list(admin.actor, user_id=user.user_id, scope=None, limit=MAX_HISTORY)
        entries = [ban_entry(ban, self._clock.now()) for ban in found]
        used = await self._own_permissions.find_applications(user.user_id, None)
        return PersonBansContext(
            head=head,
            bans=await self._rows(admin, self._view.words(request), found),
            applications=[one for one in used if one.application_id != CENTRAL_APPLICATION][:MAX_CHOICES],
            asked=read_query(request, BanQuery).scope if request.method == "GET" else "",
            picked=await self._lookup.describe(admin, draft.form, FIELDS),
            call=ApiCall(path="user/ban", body={"action": "list", "user_id": user.user_id}, record=entries),
        )

    def routes(self) -> Sequence[ConsoleRoute]:
        view, path = self._view, "/people/{user_id}/bans"
        bans = EditScreen(
            view=view,
            path=path,
            form=BanForm,
            load=self._load,
            page=self._page,
            review=self._review,
            save=self._save,
            fresh=True,
        )
        return [
            *bans.routes(),
            *view.confirmation(f"{path}/lift", LiftBanForm, self.confirm_lift, self.lift),
        ]

    def list_routes(self) -> Sequence[ConsoleRoute]:
        """Before the routes of one person: `bans` is not an ID."""
        return ListScreen(view=self._view, path="/people/bans", query=BanListQuery, page=self._list).routes()


def ban_consequences(
    t: Translator, form: BanTextForm, checked: CheckedBan, reach: BanReach, zone: str
) -> Iterator[str]:
    """What stops while the ban lasts, apart from permissions."""
    until = checked.fields.get("until", 0)
    yield t("bans.lasts_until", end=exact_time(t, until, zone)) if until else t("bans.lasts_forever")
    if checked.target.scope == INSTALLATION:
        yield t("bans.stops_sessions", count=reach.sessions)
    yield t("bans.stops_clients", count=reach.clients)
    if form.device:
        yield t("bans.stops_others", count=len(checked.others))


def parse_scope(form: BanForm | LiftBanForm | LiftBanQuery | BanListQuery) -> BanScope:
    """Return the scope that the fields name. Raises Malformed."""
    application, project = form.application_id.strip(), form.project_id.strip()
    if application and project:
        raise Malformed("project_id: not together with an application").on_screen("not_with_application")
    if application:
        return BanScope(application_id=grammar.parse_application_id(application))
    return BanScope(project_id=grammar.check_project_id(project, "project_id")) if project else BanScope()
