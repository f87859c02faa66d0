"""Base of the console's pages: routes, requests of administrators, forms and confirmations."""

import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeVar, cast
from urllib.parse import urlencode

import msgspec
from markupsafe import Markup
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.model import CENTRAL_APPLICATION, User
from gatehouse.accounts.session_model import UserSession
from gatehouse.accounts.sessions import Sessions
from gatehouse.admin.visibility import Visibility, VisibilityLoader
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import BadInput, Conflict, GatehouseError, NotFound, Refused, TooMany
from gatehouse.kernel.stored_settings import SettingsInvalid
from gatehouse.oauth.errors import BadClient
from gatehouse.permissions.authentication.authenticator import AuthenticatedRequest, Authenticator
from gatehouse.permissions.authentication.callers import Caller
from gatehouse.permissions.authentication.vouching import CallerKind
from gatehouse.permissions.errors import NoRight
from gatehouse.permissions.evaluation.loader import PermissionLoader
from gatehouse.permissions.model.facts import Facts
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.rights import Rights
from gatehouse.web.console.combobox import LookupFailed
from gatehouse.web.console.frame import NOT_SAVED_MESSAGE, SIDEBAR_COOKIE, FlashMessages, Frame, Undo, entries_for
from gatehouse.web.console.lazy_console import SignInGate, page_address
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.http.browser import Browser, is_full_session
from gatehouse.web.http.client_address import caller_address_of
from gatehouse.web.http.context import origin_of
from gatehouse.web.http.errors import problem_of
from gatehouse.web.http.page_refusals import PageRefusals
from gatehouse.web.http.parse import read_form, read_upload
from gatehouse.web.http.responses import see_other
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.translations import Translator, translate_error

Handler = Callable[[Request], Awaitable[Response]]


class ConsoleRoute(msgspec.Struct, frozen=True, kw_only=True):
    """`path` is below /console; what it has in braces is in the request's path_params."""

    method: str
    path: str
    handler: Handler


# What every page of the console shares, so that none can forget it.
#
# A session takes the place of JWT and factor; the caller and their rights are the same as at the API. A form must
# come from this browser; a destructive action needs a fresh sign-in; a refused form is shown again with the problem.
# After a fresh sign-in the page says that its form was not sent, and restores what was typed
# (static/console-typed.js).


Form = TypeVar("Form", bound=CsrfForm)
APPLICATION_PARAM: Final = "application_id"  # the part of a path that says which application a screen is about
FIELD_MESSAGE: Final = re.compile(
    r"(?:data|(?:data\.)?(?P<field>[a-z_]+)): (?P<said>.+)", re.DOTALL
)  # about one member, or all
MEMBER_MESSAGE: Final = re.compile(r"(?:data\.)?([\w-]+[.\[][^ ]*): (?!conflicts)")  # about a part of a member
CONDITION_PLACE: Final = re.compile(r"(?:.*[.\]])?condition\.(?:.*\.)?([a-z]+)(?:\[\d+\])?")
REAUTHENTICATION_SECONDS: Final = 10 * 60  # for finding a password or second factor
EXPECTED_ERRORS: Final = (BadInput, Conflict, NotFound, Refused, TooMany)


class AdminRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request of a signed-in person, with their rights."""

    browser: Browser
    signed_in: UserSession
    authenticated: AuthenticatedRequest
    visibility: Visibility
    origin: AuditOrigin

    @property
    def user(self) -> User:
        return self.signed_in.user

    @property
    def zone(self) -> str:
        """The time zone of the account, else of the browser."""
        return self.user.zoneinfo or self.browser.zone

    @property
    def rights(self) -> Rights:
        return self.authenticated.rights

    @property
    def actor(self) -> Actor:
        return self.authenticated.actor(self.origin)


class FormProblem(msgspec.Struct, frozen=True, kw_only=True):
    """Why a form is shown again."""

    text: str
    status: int
    field: str = ""  # the member of the request that `text` is about; its label is `field.<field>`
    fields: Mapping[str, "FormProblem"] = msgspec.field(default_factory=dict)  # the problem of each setting
    lookup: LookupFailed | None = None  # what was typed into the combobox `field`; the page words it there
    keys: Sequence[str] = ()  # of the screen's own text, the best first; `text` is the API's
    values: Mapping[str, object] = msgspec.field(default_factory=dict)  # in that text
    place: str = ""  # the member inside of the field, before the screen's own text
    line: str = ""  # the line of the field that `text` is about

    @property
    def control(self) -> str:
        """The name of the field that it is said at."""
        return self.field or re.split(r"[.\[]", self.place, maxsplit=1)[0]

    def words(self, t: Translator) -> str:
        """Return the text in the reader's language; the API's English one for an error that has no other."""
        if self.fields:
            return Markup("<br>").join(
                Markup("{}: {}").format(name, one.words(t)) for name, one in self.fields.items()
            )
        known = next((key for key in self.keys if t.knows(f"problem.{key}")), "")
        if not known:
            text = translate_error(t, self.text.removeprefix(f"{self.place}: "))
            return self._with_place(t, as_sentence(text, starts=False))
        values = {name: value if type(value) is int else str(value) for name, value in self.values.items()}
        if "error" in values:
            values["error"] = translate_error(t, str(values["error"]))
        text = t(f"problem.{known}", **values)
        starts = not self.place and not self.line and not t.texts[f"problem.{known}"].startswith("{")
        return self._with_place(t, as_sentence(text, starts=starts))

    def _with_place(self, t: Translator, text: str) -> str:
        """Return the text after what it is about: a line, a condition by its label, another member by its path."""
        if self.line:
            return t("line.problem", line=self.line, text=text)
        inside = CONDITION_PLACE.fullmatch(self.place)
        label = f"condition.kind_{inside[1]}" if inside else ""
        place = t(label) if t.knows(label) else self.place
        return Markup("{}: {}").format(place, text) if place else text

    @property
    def is_conflict(self) -> bool:
        return self.status == 409  # noqa: PLR2004 - HTTP


def as_sentence(text: str, *, starts: bool) -> str:
    """Return the text with a capital, unless it starts with a value, and a full stop."""
    end = "" if text.endswith((".", "?", "!", ".)")) else "."
    return (text[:1].upper() + text[1:] if starts else text) + end


class RefusalContext(PageContext, frozen=True, kw_only=True):
    template = "console/refused.html"

    problem: FormProblem
    reference: str  # empty for an unknown address


class WrongConfirmationText(BadInput):
    """The text that confirms an action was not typed as it is."""

    public = ""  # the page has its own text beside the field


class ConfirmationField(msgspec.Struct, frozen=True, kw_only=True):
    """The one field of a confirmation page: a text to retype, or a reason."""

    name: str
    label: str
    hint: str = ""
    wrong: str = ""  # shown after WrongConfirmationText
    max_length: int | None = None
    inputmode: str = "text"
    keeps_text: bool = False  # a reason is shown again, a text to retype is not
    value: str = ""


class Confirmation(PageContext, frozen=True, kw_only=True):
    """The page between a button and a destructive action: what follows, and one button that does it.

    Its form goes to the page's own address. Without `button` the action is impossible now, and `warning` says why.
    """

    template = "console/confirm.html"

    title: str
    trail: Sequence[tuple[str, str]]  # from below the entry to the page that Cancel leads to
    button: str
    text: str = ""
    warning: str = ""
    consequences: Sequence[str] = ()
    roles: Sequence[object] = ()  # of PlacedRole: what is lost
    without_effect: Sequence[object] = ()  # of WithoutEffect: why an assignment gives nothing
    subject_name: str = ""  # of the person whom that is about
    impacts: Sequence[object] = ()  # of Impact
    subject: str = ""  # what the action is about, where the title does not name it
    hint: str = ""
    is_destructive: bool = True
    hidden: Sequence[tuple[str, str]] = ()
    field: ConfirmationField | None = None
    problem: FormProblem | None = None

    def after(self, form: CsrfForm, problem: FormProblem) -> "Confirmation":
        """The page once more, with what was wrong."""
        field = self.field
        if field is not None and field.keeps_text:
            field = replace(field, value=getattr(form, field.name))
        return replace(self, field=field, problem=problem)


PageHandler = Callable[[Request, AdminRequest], Awaitable[Response]]
ConfirmationMaker = Callable[[Request, AdminRequest], Awaitable[Confirmation]]
FormHandler = Callable[[Request, AdminRequest, Form], Awaitable[Response]]
ShowAgain = Callable[[Request, AdminRequest, Form, FormProblem], Awaitable[Response]]


class ConsoleView:
    def __init__(
        self,
        *,
        sign_in_gate: SignInGate,
        sessions: Sessions,
        authenticator: Authenticator,
        permission_loader: PermissionLoader,
        visibility: VisibilityLoader,
        pages: PageRenderer,
        flash: FlashMessages,
        refusals: PageRefusals,
        clock: Clock,
    ) -> None:
        self._refusals = refusals
        self._sign_in_gate = sign_in_gate
        self._browsers = sign_in_gate.browsers
        self._sessions = sessions
        self._authenticator = authenticator
        self._permission_loader = permission_loader
        self._visibility = visibility
        self._pages = pages
        self._flash = flash
        self._clock = clock

    def page(self, path: str, page_handler: PageHandler, *, fresh: bool = False) -> ConsoleRoute:
        """A page. `fresh`: it is about something destructive, so it needs a fresh sign-in."""

        async def handler(request: Request) -> Response:
            admin = await self._admin_request(request)
            if not isinstance(admin, AdminRequest):
                return admin
            if fresh and not self._sessions.is_fresh(admin.signed_in):
                return self.redirect_to_reauthentication(page_address(request))
            return await self._render_refusal_on_error(request, admin, page_handler(request, admin))

        return ConsoleRoute(method="GET", path=path, handler=handler)

    def form(
        self,
        path: str,
        form_type: type[Form],
        form_handler: FormHandler[Form],
        *,
        show_again: ShowAgain[Form] | None = None,
        fresh: bool = False,
        form_suffix: str = "",
        file_field: str = "",
    ) -> ConsoleRoute:
        """A form. `show_again` shows it when the command refuses; without the right a refusal page is shown.

        `form_suffix`: the end of its address that the page it is on lacks; a fresh sign-in leads back to that page.
        `file_field`: the field of the form that a file is sent in.
        """

        async def handler(request: Request) -> Response:
            admin = await self._admin_request(request)
            if not isinstance(admin, AdminRequest):
                return admin
            form = await read_form_and_file(request, form_type, file_field)
            self._browsers.check_form(request, admin.browser, form.csrf)
            if fresh and not self._sessions.is_fresh(admin.signed_in):
                back = self.redirect_to_reauthentication(page_address(request).removesuffix(form_suffix))
                return self._flash.set(
                    back, NOT_SAVED_MESSAGE, lifetime=REAUTHENTICATION_SECONDS
                )  # the form is not sent automatically
            if show_again is None:
                return await self._render_refusal_on_error(request, admin, form_handler(request, admin, form))
            try:
                return await form_handler(request, admin, form)
            except NoRight as error:
                return await self._render_refusal(request, admin, error)
            except EXPECTED_ERRORS as error:
                shown = show_again(request, admin, form, problem_from(error))
                return await self._render_refusal_on_error(request, admin, shown)

        return ConsoleRoute(method="POST", path=path, handler=handler)

    def confirmation(
        self, path: str, form_type: type[Form], confirm: ConfirmationMaker, form_handler: FormHandler[Form]
    ) -> Sequence[ConsoleRoute]:
        """A page that asks before it acts, and its form; both need a fresh sign-in."""

        async def show(request: Request, admin: AdminRequest) -> Response:
            return self.render(request, admin, current_entry(request), await confirm(request, admin))

        async def show_again(request: Request, admin: AdminRequest, form: Form, problem: FormProblem) -> Response:
            context = (await confirm(request, admin)).after(form, problem)
            return self.render(request, admin, current_entry(request), context)

        return [
            self.page(path, show, fresh=True),
            self.form(path, form_type, form_handler, show_again=show_again, fresh=True),
        ]

    async def not_found(self, request: Request) -> Response:
        """The page for an unknown address, inside the console."""
        admin = await self._admin_request(request)
        if not isinstance(admin, AdminRequest):
            return admin
        return self._refusal_page(request, admin, problem_from(NotFound().on_screen("nothing_here")))

    def render(
        self,
        request: Request,
        admin: AdminRequest,
        entry: ConsoleEntry,
        context: PageContext,
        *,
        status: int | None = None,
        more: Mapping[str, object] = MappingProxyType({}),
    ) -> Response:
        """The page in its frame, with the status of the problem it shows.

        `more`: what the template has beside the context, such as the form of the page.
        """
        problem: FormProblem | None = getattr(context, "problem", None) or cast("FormProblem", more.get("problem"))
        status = status or (problem.status if problem else context.status)
        return self.render_off_loop(request, admin, entry, lambda: context, status=status, more=more)

    def render_off_loop(
        self,
        request: Request,
        admin: AdminRequest,
        entry: ConsoleEntry,
        make: Callable[[], PageContext],
        *,
        status: int | None = None,
        more: Mapping[str, object] = MappingProxyType({}),
    ) -> Response:
        """The page in its frame: the entries, and the flash message.

        `make`: called off the event loop, for a context that takes long to build and never fails.
        """
        frame = Frame(
            here=entry,
            entries=entries_for(admin.visibility),
            is_collapsed=request.cookies.get(SIDEBAR_COOKIE) == "collapsed",
            nick=admin.user.nick,
            user_id=admin.user.user_id,
            csrf=self._browsers.csrf_token(admin.browser),
            message=self._flash.read(request),
            undo=self._flash.read_undo(request),
            now=self._clock.now(),
            address=page_address(request),
        )
        page = self._pages.render_off_loop(request, make, status=status or 200, frame={**more, "frame": frame})
        return self._flash.clear(page) if frame.message else page

    def now(self) -> int:
        return self._clock.now()

    def words(self, request: Request) -> Translator:
        """Texts in the reader's language, for what no template writes."""
        return self._pages.translator_for(request)

    def redirect_with_flash(self, address: str, message: str, *, undo: Undo | None = None) -> Response:
        """Redirects to a page that shows once what was done, and undoes it; the text is `note.<message>`."""
        return self._flash.set(see_other(address), message, undo=undo)

    def redirect_to_reauthentication(self, address: str) -> Response:
        """Redirects to the fresh sign-in, and back to this page."""
        return see_other(f"{Path.CONFIRM}?{urlencode({'next': address})}")

    async def reload(self, request: Request) -> AdminRequest | None:
        """The same request with what is stored now, after it was changed."""
        admin = await self._admin_request(request)
        return admin if isinstance(admin, AdminRequest) else None

    async def for_application(self, admin: AdminRequest, application_id: int) -> AdminRequest:
        """The same request, with rights on an application that the path does not name."""
        authenticated = await self._authenticate(admin.user.user_id, admin.authenticated.caller, application_id)
        return AdminRequest(
            browser=admin.browser,
            signed_in=admin.signed_in,
            authenticated=authenticated,
            visibility=admin.visibility,
            origin=admin.origin,
        )

    async def authenticate_for_each(
        self, admin: AdminRequest, application_ids: Collection[int]
    ) -> Mapping[int, AuthenticatedRequest]:
        """Their rights on many applications, from one snapshot."""
        return await self._authenticator.attach_rights_in_each(admin.authenticated.caller, application_ids)

    async def _admin_request(self, request: Request) -> AdminRequest | Response:
        browser = await self._browsers.read(request)
        signed_in = browser.signed_in
        if not is_full_session(signed_in):
            return await self._sign_in_gate.redirect_to_sign_in(request, browser)
        address = caller_address_of(request.scope)
        caller = Caller(by=CallerKind.FACTOR, address=address.address if address.proven else None)
        application_id = request.path_params.get(APPLICATION_PARAM)
        authenticated = await self._authenticate(signed_in.user.user_id, caller, application_id)
        return AdminRequest(
            browser=browser,
            signed_in=signed_in,
            authenticated=authenticated,
            visibility=await self._visibility.load(authenticated.rights),
            origin=origin_of(request, signed_in.user.user_id),
        )

    async def _authenticate(self, user_id: str, caller: Caller, application_id: int | None) -> AuthenticatedRequest:
        facts = await self._load_facts(user_id, {CENTRAL_APPLICATION, application_id or CENTRAL_APPLICATION})
        return await self._authenticator.attach_rights(
            Caller(by=caller.by, facts=facts, application_id=application_id, address=caller.address)
        )

    async def _load_facts(self, user_id: str, application_ids: Collection[int]) -> Facts:
        facts = await self._permission_loader.load_facts(user_id, application_ids)
        if facts is None:
            raise NoRight("the account is gone")
        return facts

    async def _render_refusal_on_error(
        self, request: Request, admin: AdminRequest, response: Awaitable[Response]
    ) -> Response:
        try:
            return await response
        except EXPECTED_ERRORS as error:
            return await self._render_refusal(request, admin, error)

    async def _render_refusal(self, request: Request, admin: AdminRequest, error: GatehouseError) -> Response:
        """Show a refusal inside the console, with a reference to report."""
        await self._refusals.add(request, error, actor=admin.origin.actor)
        return self._refusal_page(request, admin, problem_from(error), reference=admin.origin.request_id)

    def _refusal_page(
        self, request: Request, admin: AdminRequest, problem: FormProblem, *, reference: str = ""
    ) -> Response:
        context = RefusalContext(problem=problem, reference=reference)
        return self.render(request, admin, current_entry(request), context)


async def read_form_and_file(request: Request, form_type: type[Form], file_field: str) -> Form:
    if not file_field:
        return await read_form(request, form_type)
    form, content = await read_upload(request, form_type, file_field)
    return msgspec.structs.replace(form, **{file_field: content})


def problem_from(error: GatehouseError) -> FormProblem:
    """An API error as a form shows it: about a field, not about a member's path."""
    problem = problem_of(error)
    shown = FormProblem(
        text=problem.message,
        status=problem.status,
        keys=screen_keys(error, problem.message),
        values=error.screen_values,
    )
    if isinstance(error, SettingsInvalid):
        return replace(shown, fields={name: problem_from(one) for name, one in error.problems.items()})
    if isinstance(error, LookupFailed):
        return replace(shown, field=error.field, lookup=error)
    if isinstance(error, BadClient) and error.field:
        is_entry = "[" in error.field
        return replace(shown, field="" if is_entry else error.field, place=error.field if is_entry else "")
    place = FIELD_MESSAGE.fullmatch(problem.message)
    if place is None:
        inside = MEMBER_MESSAGE.match(problem.message)
        return replace(shown, text=problem.message.removeprefix("data."), place=inside[1] if inside else "")
    return replace(shown, text=place["said"], field=place["field"] or "")


def screen_keys(error: GatehouseError, message: str) -> Sequence[str]:
    """The keys of its text; a detail without a key of its own says more than the text of its class."""
    if error.screen_key or message != error.public:
        return [error.screen_key]
    return [kind.__name__ for kind in type(error).__mro__]


def require_confirmation_text(typed: str, expected: str) -> None:
    if typed.strip() != expected:
        raise WrongConfirmationText


def current_entry(request: Request) -> ConsoleEntry:
    parts: list[str] = request.scope["path"].split("/")
    return next((entry for entry in ConsoleEntry if entry.value in parts[2:3]), ConsoleEntry.HOME)
