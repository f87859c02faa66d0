"""Access, sign-in doctor: what a person would meet if they signed in now."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.sign_in_doctor import FindingKind, SignInDiagnosis, SignInDoctor
from gatehouse.kernel.clock import Clock
from gatehouse.web.api.permissions.sign_in_diagnosis import diagnosis_entry
from gatehouse.web.console.combobox import ComboboxKind, ComboboxOption, LookupFailed
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.lookup import Lookup
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView, FormProblem
from gatehouse.web.http.parse import read_query
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

ENTRY: Final = ConsoleEntry.ACCESS
FIELDS: Final = {"user_id": ComboboxKind.PERSON, "application_id": ComboboxKind.APPLICATION}
# Where a finding can be changed, below the person's page.
REMEDIES: Final[Mapping[FindingKind, str]] = {
    FindingKind.ACCOUNT_BLOCKED: "act/unblock",
    FindingKind.BANNED: "bans",
    FindingKind.INVITED: "act/link",
    FindingKind.EMAIL_UNVERIFIED: "email",
    FindingKind.SECOND_FACTOR: "methods",
}


class DoctorQuery(msgspec.Struct, frozen=True, kw_only=True):
    user_id: str = ""
    application_id: str = ""


class DoctorForm(CsrfForm, frozen=True, kw_only=True):
    user_id: str = ""
    application_id: str = ""


class DoctorContext(PageContext, frozen=True, kw_only=True):
    template = "console/access/doctor.html"

    query: DoctorQuery | DoctorForm
    picked: Mapping[str, ComboboxOption]
    administers: bool
    diagnosis: SignInDiagnosis | None = None
    application: str = ""
    unknown_email: str = ""  # that no account has
    remedies: Mapping[FindingKind, str] = msgspec.field(default_factory=dict)
    call: ApiCall | None = None
    until: int = 0  # of the lock
    problem: FormProblem | None = None


class DoctorScreens:
    def __init__(self, *, doctor: SignInDoctor, lookup: Lookup, view: ConsoleView, clock: Clock) -> None:
        self._doctor = doctor
        self._lookup = lookup
        self._view = view
        self._clock = clock

    async def show(self, request: Request, admin: AdminRequest) -> Response:
        return self._view.render(request, admin, ENTRY, await self._form(admin, read_query(request, DoctorQuery)))

    async def _form(
        self, admin: AdminRequest, query: DoctorQuery | DoctorForm, problem: FormProblem | None = None
    ) -> DoctorContext:
        return DoctorContext(
            query=query,
            picked=await self._lookup.describe(admin, query, FIELDS),
            administers=admin.rights.administers,
            problem=problem,
        )

    async def show_again(
        self, request: Request, admin: AdminRequest, form: DoctorForm, problem: FormProblem
    ) -> Response:
        return self._view.render(request, admin, ENTRY, await self._form(admin, form, problem), status=problem.status)

    async def examine(self, request: Request, admin: AdminRequest, form: DoctorForm) -> Response:
        blank = await self._form(admin, form)
        try:
            asked = await self._lookup.resolve(admin, form, FIELDS)
        except LookupFailed as failed:
            if failed.field == "user_id" and is_unknown_email(failed, blank):
                return self._view.render(request, admin, ENTRY, replace(blank, unknown_email=form.user_id.strip()))
            raise
        application_id = int(asked.application_id or 0)
        if application_id:
            admin = await self._view.for_application(admin, application_id)
        diagnosis = await self._doctor.examine(admin.authenticated, admin.actor, asked.user_id, application_id)
        model = admin.authenticated.model
        context = replace(
            blank,
            diagnosis=diagnosis,
            application=model.application.name if application_id and model else "",
            remedies=self._remedies(diagnosis) if diagnosis.of_account else {},
            until=self._clock.now() + next((one.seconds for one in diagnosis.findings if one.seconds), 0),
            call=ApiCall(
                path="user",
                body={
                    "action": "check_sign_in",
                    **({"application_id": application_id} if application_id else {}),
                    "data": {"user_id": diagnosis.user_id},
                },
                record=diagnosis_entry(diagnosis),
            ),
        )
        return self._view.render(request, admin, ENTRY, context)

    def _remedies(self, diagnosis: SignInDiagnosis) -> Mapping[FindingKind, str]:
        person = f"{ConsoleEntry.PEOPLE.path}/{diagnosis.user_id}"
        found = {what: f"{person}/{path}" for what, path in REMEDIES.items()}
        if diagnosis.application_id:
            rules = f"{ConsoleEntry.APPLICATIONS.path}/{diagnosis.application_id}/rules/login"
            found[FindingKind.APPLICATION] = rules
        return found

    def routes(self) -> Sequence[ConsoleRoute]:
        path = "/access/sign-in"
        return [
            self._view.page(path, self.show),
            self._view.form(path, DoctorForm, self.examine, show_again=self.show_again),
        ]


def is_unknown_email(failed: LookupFailed, context: DoctorContext) -> bool:
    """Whether an administrator typed an address that no account has."""
    return context.administers and "@" in failed.text and not failed.candidates
