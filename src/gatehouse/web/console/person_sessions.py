"""One person: their sessions, connected applications, sign-in methods and activity."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.model import User
from gatehouse.accounts.own_account.model import AccountDetails
from gatehouse.accounts.own_account.profile import AccountProfile
from gatehouse.accounts.second_factors.model import Factor
from gatehouse.accounts.session_model import Session
from gatehouse.accounts.sessions import Sessions
from gatehouse.admin.names import NameStore
from gatehouse.admin.paging import Page
from gatehouse.admin.people import ActivitySide
from gatehouse.admin.visible_audit_log import redact_record
from gatehouse.audit.model import AuditRecord
from gatehouse.kernel.errors import NotFound
from gatehouse.oauth.authorize.service import Consents
from gatehouse.oauth.given_grants import GivenGrants
from gatehouse.web.api.permissions.user_sessions import methods_entry, user_sessions_entry
from gatehouse.web.console.activity import RecordDescriber, RecordView
from gatehouse.web.console.edit_screen import EditScreen, FormDraft, Saved
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.list_screen import CsvFile, ListQuery, ListScreen
from gatehouse.web.console.person import ENTRY, PersonHead, PersonLoader
from gatehouse.web.console.view import AdminRequest, Confirmation, ConfirmationField, ConsoleRoute
from gatehouse.web.http.browser import device_name
from gatehouse.web.http.geoip import GeoIpLookup
from gatehouse.web.http.parse import read_query
from gatehouse.web.pages import account_contexts
from gatehouse.web.pages.account import connected_applications, failure_rows, sign_in_rows
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm
from gatehouse.web.pages.translations import Translator

ALL_FACTORS: Final = "all"
MAX_REASON_LENGTH: Final = 200
SESSION_COLUMNS: Final = {
    "device": lambda one: one.device,
    "place": lambda one: one.place,
    "address": lambda one: one.address,
    "seen": lambda one: one.seen_at,
    "since": lambda one: one.created_at,
}
SIGN_IN_COLUMNS: Final = {
    "at": lambda one: one.at,
    "method": lambda one: one.method,
    "application": lambda one: one.application,
    "device": lambda one: one.device,
    "place": lambda one: one.place,
    "address": lambda one: one.address,
}
CONNECTED_COLUMNS: Final = {
    "client_id": lambda one: one.client_id,
    "name": lambda one: one.name,
    "scopes": lambda one: one.scopes,
    "since": lambda one: one.since,
    "used": lambda one: one.used_at,
    "ends": lambda one: one.ends_at,
}
ACTIVITY_COLUMNS: Final = {
    "at": lambda one: one.at,
    "event": lambda one: one.event,
    "by": lambda one: one.actor,
    "about": lambda one: one.subject,
    "address": lambda one: (one.personal or {}).get("address", ""),
    "details": lambda one: [f"{name}: {value}" for name, value in one.details.items()],
    "id": lambda one: one.record_id,
}


class SessionsQuery(ListQuery, frozen=True, kw_only=True):
    list: str = ""  # which of the three


class SessionsContext(PageContext, frozen=True, kw_only=True):
    template = "console/people/sessions.html"

    head: PersonHead
    sessions: Sequence[account_contexts.AccountSessionRow]
    sign_ins: Sequence[account_contexts.SignInHistoryRow]
    applications: Sequence[account_contexts.ConnectedApplication]
    call: ApiCall
    query: SessionsQuery


class MethodsContext(PageContext, frozen=True, kw_only=True):
    template = "console/people/methods.html"

    head: PersonHead
    user: User
    methods: AccountDetails
    call: ApiCall


class PersonActivityContext(PageContext, frozen=True, kw_only=True):
    template = "console/people/activity.html"

    head: PersonHead
    found: Page[AuditRecord]
    records: Sequence[RecordView]
    side: ActivitySide
    nicks: Mapping[str, str]  # of others, by id
    failures: Sequence[account_contexts.FailureRow] = ()
    sides: Sequence[ActivitySide] = tuple(ActivitySide)


class EndSessionForm(CsrfForm, frozen=True, kw_only=True):
    """One of the three: a session or a grant to end, or a client to take away what it holds."""

    session_id: str = ""
    grant_id: str = ""
    client_id: str = ""


class RemoveFactorQuery(msgspec.Struct, frozen=True, kw_only=True):
    factor: str = ALL_FACTORS
    passkey_id: str = ""


class RemoveFactorForm(CsrfForm, frozen=True, kw_only=True):
    factor: str = ""
    passkey_id: str = ""
    reason: str = ""


class OpenPhoneForm(CsrfForm, frozen=True, kw_only=True):
    reason: str = ""


class PersonActivityQuery(ListQuery, frozen=True, kw_only=True):
    side: str = ""

    @property
    def chosen(self) -> ActivitySide:
        return ActivitySide(self.side) if self.side in list(ActivitySide) else ActivitySide.ABOUT


class PersonSessionScreens:
    def __init__(
        self,
        loader: PersonLoader,
        *,
        sessions: Sessions,
        consents: Consents,
        given_grants: GivenGrants,
        profile: AccountProfile,
        names: NameStore,
        places: GeoIpLookup,
        describer: RecordDescriber,
    ) -> None:
        self._loader = loader
        self._view = loader.view
        self._sessions = sessions
        self._consents = consents
        self._given_grants = given_grants
        self._profile = profile
        self._names = names
        self._places = places
        self._describer = describer

    async def _sessions_page(self, request: Request, admin: AdminRequest, query: SessionsQuery) -> SessionsContext:
        user, head = await self._loader.load(request, admin, "sessions")
        current = admin.signed_in.session.session_id
        live = await self._sessions.of_user(user.user_id)
        sessions = [self._session_entry(one, admin.user.lang, current) for one in live]
        sign_ins = sign_in_rows(await self._profile.load_sign_ins(user.user_id), self._places, admin.user.lang)
        given = await self._consents.of_user(user.user_id)
        grants = await self._given_grants.of_user(user.user_id)
        applications = await connected_applications(self._consents, given, grants)
        return SessionsContext(
            head=head,
            sessions=sessions,
            sign_ins=sign_ins,
            applications=applications,
            call=person_call("sessions", user.user_id, user_sessions_entry(live, given, self._places)),
            query=query,
        )

    async def end_session_or_consent(self, request: Request, admin: AdminRequest, form: EndSessionForm) -> Response:
        user_id: str = request.path_params["user_id"]
        if form.client_id:
            await self._loader.people_admin.disconnect(admin.actor, user_id, form.client_id)
            note = "client_disconnected"
        elif form.grant_id:
            await self._loader.people_admin.end_grant(admin.actor, user_id, form.grant_id)
            note = "grant_ended"
        else:
            await self._loader.people_admin.end_session(admin.actor, user_id, form.session_id)
            note = "session_ended"
        return self._view.redirect_with_flash(f"{ENTRY.path}/{user_id}/sessions", note)

    async def list_methods(self, request: Request, admin: AdminRequest) -> Response:
        user, head = await self._loader.load(request, admin, "methods")
        methods = await self._profile.load_details(user)
        call = person_call("methods", user.user_id, methods_entry(user, methods))
        context = MethodsContext(head=head, user=user, methods=methods, call=call)
        return self._view.render(request, admin, ENTRY, context)

    async def _asked_removal(self, request: Request, _admin: AdminRequest) -> RemoveFactorForm:
        query = read_query(request, RemoveFactorQuery)
        return RemoveFactorForm(factor=query.factor, passkey_id=query.passkey_id)

    async def _removal_page(
        self, request: Request, admin: AdminRequest, _asked: RemoveFactorForm, draft: FormDraft[RemoveFactorForm]
    ) -> Confirmation:
        page = await self._factor_removal(request, admin, draft.form.factor, draft.form.passkey_id)
        return page if draft.problem is None else page.after(draft.form, draft.problem)

    async def _remove_factor(
        self, request: Request, admin: AdminRequest, _asked: RemoveFactorForm, form: RemoveFactorForm
    ) -> Saved:
        user_id: str = request.path_params["user_id"]
        people_admin = self._loader.people_admin
        if form.factor == ALL_FACTORS:
            await people_admin.remove_all_factors(admin.actor, user_id, reason=form.reason)
        else:
            factor = parse_factor(form.factor)
            await people_admin.remove_factor(
                admin.actor, user_id, factor, reason=form.reason, passkey_id=form.passkey_id
            )
        return Saved(address=f"{ENTRY.path}/{user_id}/methods", message="factor_removed")

    async def _no_query(self, _request: Request, _admin: AdminRequest) -> OpenPhoneForm:
        return OpenPhoneForm()

    async def _opening_page(
        self, request: Request, admin: AdminRequest, _asked: OpenPhoneForm, draft: FormDraft[OpenPhoneForm]
    ) -> Confirmation:
        _user, head = await self._loader.load(request, admin, "methods")
        t = self._view.words(request)
        page = Confirmation(
            title=t("people.open_phone_title", nick=head.nick),
            trail=[(head.nick, f"{head.path}/methods")],
            text=t("people.open_phone_text"),
            field=reason_field(t),
            button=t("people.open_phone"),
        )
        return page if draft.problem is None else page.after(draft.form, draft.problem)

    async def _open_phone(
        self, request: Request, admin: AdminRequest, _asked: OpenPhoneForm, form: OpenPhoneForm
    ) -> Saved:
        user_id: str = request.path_params["user_id"]
        await self._loader.people_admin.open_phone(admin.actor, user_id, reason=form.reason)
        return Saved(address=f"{ENTRY.path}/{user_id}/methods", message="phone_opened")

    async def _activity(
        self, request: Request, admin: AdminRequest, query: PersonActivityQuery
    ) -> PersonActivityContext:
        user, head = await self._loader.load(request, admin, "activity")
        page = await self._loader.lists.activity(user.user_id, query.chosen, query.page_request)
        found = replace(page, rows=[redact_record(record, admin.rights) for record in page.rows])
        others = {one for record in found.rows for one in (record.actor, record.subject) if one.isdecimal()}
        nicks = {one.user_id: one.nick for one in (await self._names.people_by_id(others)).values()}
        records = await self._describer.describe(page.rows, admin, self._view.words(request))
        words = self._view.words(request)
        first = query.chosen is ActivitySide.ABOUT and query.page_request.page == 1
        failed = await self._profile.load_failures(user.user_id) if first else ()
        return PersonActivityContext(
            head=head,
            found=found,
            records=records,
            side=query.chosen,
            nicks=nicks,
            failures=failure_rows(failed, self._places, words.lang),
        )

    async def _factor_removal(
        self, request: Request, admin: AdminRequest, factor: str, passkey_id: str
    ) -> Confirmation:
        user, head = await self._loader.load(request, admin, "methods")
        t, is_all = self._view.words(request), factor == ALL_FACTORS
        passkeys = (await self._profile.load_details(user)).passkeys
        name = next((passkey.name for passkey in passkeys if passkey.passkey_id == passkey_id), "")
        what = t("people.every_factor") if is_all else name or t(f"method.{parse_factor(factor)}")
        removed = len(passkeys) if is_all else 1 if factor == Factor.PASSKEY else 0
        leaves_nothing = user.password_hash is None and removed == len(passkeys) > 0
        return Confirmation(
            title=t("people.remove_title", what=what, nick=head.nick),
            trail=[(head.nick, f"{head.path}/methods")],
            text=t("people.remove_all_text" if is_all else "people.remove_text"),
            warning=t("people.leaves_nothing") if leaves_nothing else "",
            hidden=[("factor", factor), ("passkey_id", passkey_id)],
            field=reason_field(t),
            button=t("people.remove"),
        )

    def _session_entry(self, session: Session, lang: str, current: str) -> account_contexts.AccountSessionRow:
        return account_contexts.AccountSessionRow(
            session_id=session.session_id,
            device=device_name(session.agent),
            place=self._places.place_name(session.address, lang),
            address=session.address,
            created_at=session.created_at,
            seen_at=session.seen_at,
            is_current=session.session_id == current,
        )

    def routes(self) -> Sequence[ConsoleRoute]:
        view, path = self._view, "/people/{user_id}"
        sessions = ListScreen(
            view=view, path=f"{path}/sessions", query=SessionsQuery, page=self._sessions_page, file=sessions_file
        )
        removal = EditScreen(
            view=view,
            path=f"{path}/methods/remove",
            form=RemoveFactorForm,
            load=self._asked_removal,
            page=self._removal_page,
            save=self._remove_factor,
            fresh=True,
            fresh_page=True,
        )
        opening = EditScreen(
            view=view,
            path=f"{path}/methods/open-phone",
            form=OpenPhoneForm,
            load=self._no_query,
            page=self._opening_page,
            save=self._open_phone,
            fresh=True,
            fresh_page=True,
        )
        activity = ListScreen(
            view=view,
            path=f"{path}/activity",
            query=PersonActivityQuery,
            page=self._activity,
            file=lambda page: CsvFile(name="activity", columns=ACTIVITY_COLUMNS, rows=page.found.rows),
        )
        return [
            *sessions.routes(),
            view.form(f"{path}/sessions", EndSessionForm, self.end_session_or_consent, fresh=True),
            view.page(f"{path}/methods", self.list_methods),
            *removal.routes(),
            *opening.routes(),
            *activity.routes(),
        ]


def reason_field(t: Translator) -> ConfirmationField:
    return ConfirmationField(
        name="reason",
        label=t("people.reason"),
        hint=t("people.reason_hint"),
        max_length=MAX_REASON_LENGTH,
        keeps_text=True,
    )


def sessions_file(page: SessionsContext) -> CsvFile[Any]:
    """The file of one of the page's three lists."""
    if page.query.list == "applications":
        return CsvFile(name="connected-applications", columns=CONNECTED_COLUMNS, rows=page.applications)
    if page.query.list == "history":
        return CsvFile(name="sign-ins", columns=SIGN_IN_COLUMNS, rows=page.sign_ins)
    return CsvFile(name="sessions", columns=SESSION_COLUMNS, rows=page.sessions)


def person_call(part: str, user_id: str, record: object) -> ApiCall:
    return ApiCall(path=f"user/{part}", body={"action": "get", "data": {"user_id": user_id}}, record=record)


def parse_factor(text: str) -> Factor:
    try:
        return Factor(text)
    except ValueError:
        raise NotFound("no such factor") from None
