"""Bans: those of one person, with ban and lift, and the list of all."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final

from markupsafe import Markup
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.bans.model import INSTALLATION, MAX_PUBLIC_TEXT, MAX_REASON, Ban, BanScope, BanState, UserBan
from gatehouse.accounts.model import CENTRAL_APPLICATION, User
from gatehouse.admin.names import NameStore
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
from gatehouse.web.console.forms import ReviewedForm, form_text, hidden_fields
from gatehouse.web.console.frame import ApiCall, Undo
from gatehouse.web.console.impact import MAX_APPLICATIONS, Impact, ReviewContext, describe_impact
from gatehouse.web.console.list_screen import CsvFile, ListQuery, ListScreen
from gatehouse.web.console.lookup import Lookup
from gatehouse.web.console.person import ENTRY, PersonHead, PersonLoader
from gatehouse.web.console.view import EXPECTED_ERRORS, AdminRequest, ConsoleRoute, FormProblem, problem_from
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm
from gatehouse.web.pages.template_filters import exact_time
from gatehouse.web.pages.translations import Translator

LIST_PATH: Final = f"{ENTRY.path}/bans"
FIELDS: Final = {"application_id": ComboboxKind.APPLICATION, "project_id": ComboboxKind.PROJECT}
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


class BanForm(ReviewedForm, frozen=True, kw_only=True):
    """Without an application and a project it is about the whole installation."""

    application_id: str = ""
    project_id: str = ""
    public_text: str = ""
    reason: str = ""
    until: str = ""  # in UTC, to the minute
    device: str = ""  # "yes": also for every account on the person's devices
    confirm: str = ""  # "yes": even if many accounts used one of them

    def draft(self) -> BanDraft:
        return BanDraft(
            public_text=self.public_text.strip(),
            reason=form_text(self.reason),
            until=parse_end(self.until),
            device=self.device == "yes",
            confirm=self.confirm == "yes",
        )


class LiftBanForm(CsrfForm, frozen=True, kw_only=True):
    application_id: str = ""
    project_id: str = ""


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
    bans: Sequence[BanEntry]
    picked: Mapping[str, ComboboxOption]
    call: ApiCall
    max_text: int = MAX_PUBLIC_TEXT
    max_reason: int = MAX_REASON


class BanListContext(PageContext, frozen=True, kw_only=True):
    template = "console/people/bans.html"

    bans: Sequence[BanEntry]
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
        form = await self._lookup.resolve(admin, form, FIELDS)
        scope = parse_scope(form)
        replaced = await self._bans.list(
            admin.actor, user_id=user.user_id, scope=scope, state=BanState.ACTIVE, limit=1
        )
        await self._bans.save(admin.actor, user.user_id, scope, form.draft())
        path = f"{ENTRY.path}/{user.user_id}/bans"
        fields = [("application_id", form.application_id), ("project_id", form.project_id)]
        undo = None if replaced else Undo(path=f"{path}/lift", fields=fields)  # a replaced ban would be lifted too
        return Saved(address=path, message="person_banned", undo=undo)

    async def _review(self, request: Request, admin: AdminRequest, _user: User, form: BanForm) -> ReviewContext:
        """What the ban takes away."""
        form = await self._lookup.resolve(admin, form, FIELDS)
        user_id: str = request.path_params["user_id"]
        checked = await self._bans.check(admin.actor, user_id, parse_scope(form), form.draft())
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
        return next((one.label for one in picked.values()), t("bans.installation"))

    async def _lost_permissions(self, user: User, scope: BanScope) -> Sequence[Impact]:
        """What the person loses in each application that the ban covers, as if it were already stored."""
        user_id = user.user_id
        named = {one.application_id: one.name for one in await self._own_permissions.find_applications(user_id, None)}
        among = {scope.application_id} if scope.application_id else named.keys()
        facts = await self._permission_loader.load_facts(user_id, among)
        if facts is None:
            return ()
        before = await self._permission_loader.load_input(facts)
        ban = UserBan(ban_id="", application_id=scope.application_id, project_id=scope.project_id)
        after = replace(before, facts=replace(before.facts, bans=(*before.facts.bans, ban)))
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

    async def lift(self, request: Request, admin: AdminRequest, form: LiftBanForm) -> Response:
        user_id: str = request.path_params["user_id"]
        lifted = await self._bans.lift(admin.actor, user_id, parse_scope(form))
        path = LIST_PATH if lifted.erased_at else f"{ENTRY.path}/{user_id}/bans"
        return self._view.redirect_with_flash(path, "ban_lifted")

    async def _list(
        self, _request: Request, admin: AdminRequest, typed: BanListQuery
    ) -> BanListContext | CsvFile[BanEntry]:
        require_operation(admin.rights, Operation.ADMINISTER)
        try:
            query = await self._lookup.resolve(admin, typed, FIELDS)
            scope = parse_scope(query) if query.application_id or query.project_id else None
        except EXPECTED_ERRORS as error:
            return await self._list_context(admin, typed, (), problem_from(error))
        if query.is_file:
            pages = self._all_pages(admin.actor, scope, query.state_filter)
            return CsvFile(name="bans", columns=COLUMNS, pages=pages)
        found = await self._bans.list(
            admin.actor, scope=scope, state=query.state_filter, before=query.before, limit=PAGE_ROWS + 1
        )
        return await self._list_context(admin, typed, found)

    async def _list_context(
        self, admin: AdminRequest, query: BanListQuery, found: Sequence[Ban], problem: FormProblem | None = None
    ) -> BanListContext:
        shown, now = found[:PAGE_ROWS], self._clock.now()
        nicks = await self._names.people_by_id({ban.user_id for ban in shown})
        return BanListContext(
            bans=[ban_entry(ban, now) for ban in shown],
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
        return PersonBansContext(
            head=head,
            bans=entries,
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
        return [*bans.routes(), view.form(f"{path}/lift", LiftBanForm, self.lift, fresh=True)]

    def list_routes(self) -> Sequence[ConsoleRoute]:
        """Before the routes of one person: `bans` is not an ID."""
        return ListScreen(view=self._view, path="/people/bans", query=BanListQuery, page=self._list).routes()


def ban_consequences(t: Translator, form: BanForm, checked: CheckedBan, reach: BanReach, zone: str) -> Iterator[str]:
    """What stops while the ban lasts, apart from permissions."""
    until = checked.fields.get("until", 0)
    yield t("bans.lasts_until", end=exact_time(t, until, zone)) if until else t("bans.lasts_forever")
    if checked.target.scope == INSTALLATION:
        yield t("bans.stops_sessions", count=reach.sessions)
    yield t("bans.stops_clients", count=reach.clients)
    if form.device:
        yield t("bans.stops_others", count=len(checked.others))


def parse_scope(form: BanForm | LiftBanForm | BanListQuery) -> BanScope:
    """Return the scope that the fields name. Raises Malformed."""
    application, project = form.application_id.strip(), form.project_id.strip()
    if application and project:
        raise Malformed("project_id: not together with an application").on_screen("not_with_application")
    if application:
        return BanScope(application_id=grammar.parse_application_id(application))
    return BanScope(project_id=grammar.check_project_id(project, "project_id")) if project else BanScope()


def parse_end(text: str) -> int:
    """Return the time of a datetime field; 0 for an empty one. Raises Malformed."""
    if not text.strip():
        return 0
    try:
        return int(datetime.fromisoformat(text.strip()).replace(tzinfo=UTC).timestamp())
    except (ValueError, OverflowError):
        raise Malformed("until: must be a date and time").on_screen("date_time") from None
