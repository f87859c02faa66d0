"""POST /api/permissions/user: accounts for administrators, and names for readers of an application (R9).

Everything here is what the console does, through the same services.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias, assert_never

import msgspec
from msgspec import UNSET, Struct, UnsetType
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from gatehouse.accounts.invitations import Invitation
from gatehouse.accounts.model import ACCOUNT_FIELDS, AccountField, User
from gatehouse.accounts.own_account.export import DataExport, PersonalDataExport
from gatehouse.accounts.second_factors.model import Factor
from gatehouse.admin.access_invitations import AccessInvitations
from gatehouse.admin.people import PeopleListStore
from gatehouse.admin.people_admin import PeopleAdmin
from gatehouse.admin.sign_in_doctor import SignInDoctor
from gatehouse.fields.derive import patch_members, with_members
from gatehouse.fields.model import DescribedField, Kind
from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.images.loading import NewImage
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.times import iso8601
from gatehouse.permissions.authentication.authenticator import AuthenticatedRequest, Authenticator
from gatehouse.permissions.authentication.credentials import DEFAULT_POLICY
from gatehouse.permissions.commands.users import read_labels
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.documents.grammar import ApplicationId
from gatehouse.permissions.errors import Malformed, PersonNotFound
from gatehouse.permissions.model.invitation import NEWEST, AccessInvitation, InvitationPosition, InvitedAccess
from gatehouse.permissions.questions.check import refuse_about_others
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import Operation, is_open
from gatehouse.personal_data.requests import DataRequests
from gatehouse.web.api.permissions.authentication import CredentialFields, actor_of, credentials_of
from gatehouse.web.api.permissions.envelope import (
    DataResponse,
    data_response,
    iter_json_chunks,
    ok_response,
    permission_endpoint,
    untagged_response,
)
from gatehouse.web.api.permissions.listing import MAX_LIMIT, Cursors, ListResponse
from gatehouse.web.api.permissions.schemas import parse_optional_application_id
from gatehouse.web.api.permissions.sign_in_diagnosis import diagnosis_entry
from gatehouse.web.api.permissions.user_records import UserEntry, user_entry
from gatehouse.web.http.parse import read_action
from gatehouse.web.http.responses import NO_STORE
from gatehouse.web.http.routing import SCHEMA_BODY_LIMIT, Endpoint

ALL_FACTORS: Final = "all"


@with_members(lambda: patch_members(ACCOUNT_FIELDS))
class AccountData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields of an account."""

    user_id: str | UnsetType = UNSET
    login: str | UnsetType = UNSET
    nick: str | UnsetType = UNSET
    lang: str | UnsetType = UNSET
    picture: str | UnsetType | None = UNSET  # a URL that is fetched once; the one that this service answers is kept
    email_verified: bool | UnsetType = UNSET
    tags: list[object] | UnsetType | None = UNSET
    purchases: list[object] | UnsetType | None = UNSET
    version: int | UnsetType = UNSET  # of save
    level: object = UNSET  # this and the next four are accepted and ignored (R6)
    registered: object = UNSET
    blocked: object = UNSET
    provided_tags: object = UNSET
    provided_purchases: object = UNSET


class NewAccountData(AccountData, SecretRecord, frozen=True, kw_only=True):
    password: SecretText | UnsetType | None = UNSET


class NamedUserData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    user_id: str | UnsetType = UNSET


class InvitedRoleData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A role that the person gets when they accept; without `project_id` in the whole application."""

    application_id: ApplicationId
    name: str
    project_id: str = ""
    expired: Annotated[int, msgspec.Meta(ge=0)] = 0  # Unix seconds; 0 for no end


class InvitationData(NamedUserData, frozen=True, kw_only=True):
    """A new address, or an existing account; with `project_id` as its owners invite, by mail only (R9)."""

    login: str | UnsetType = UNSET
    nick: str | UnsetType = UNSET
    lang: str | UnsetType = UNSET
    project_id: str = ""
    role: InvitedRoleData | None = None
    group_id: str = ""

    @property
    def access(self) -> InvitedAccess:
        if self.role is None:
            return InvitedAccess(group_id=self.group_id)
        return InvitedAccess(
            application_id=grammar.parse_application_id(self.role.application_id),
            role=self.role.name,
            end=self.role.expired,
            project_id=self.role.project_id,
            group_id=self.group_id,
        )


class OpenInvitationsData(NamedUserData, frozen=True, kw_only=True):
    """Of invitations and withdraw: those into a project that the caller manages, or of an account."""

    project_id: str = ""


class ListInvitationsData(OpenInvitationsData, frozen=True, kw_only=True):
    after: str | None = None  # of the answer before; null for the first page
    limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_LIMIT)] = MAX_LIMIT


class WithdrawData(OpenInvitationsData, frozen=True, kw_only=True):
    invitation_id: str


class EndSessionsData(NamedUserData, frozen=True, kw_only=True):
    session_id: str | UnsetType = UNSET  # this session only
    client_id: str | UnsetType = UNSET  # what this client holds only


class ResetFactorsData(NamedUserData, frozen=True, kw_only=True):
    factor: Literal["all", "totp", "email", "phone", "passkey"] = "all"
    passkey_id: str = ""
    reason: str = ""


class UserAdminFields(CredentialFields, frozen=True, kw_only=True, tag_field="action"):
    application_id: ApplicationId | None = None  # of get: for readers of an application who administer nothing


class GetUser(UserAdminFields, frozen=True, kw_only=True, tag="get"):
    data: NamedUserData


class CheckSignIn(UserAdminFields, frozen=True, kw_only=True, tag="check_sign_in"):
    data: NamedUserData


class CreateUser(UserAdminFields, frozen=True, kw_only=True, tag="create"):
    data: NewAccountData


class SaveUser(UserAdminFields, frozen=True, kw_only=True, tag="save"):
    data: AccountData


class BlockUser(UserAdminFields, frozen=True, kw_only=True, tag="block"):
    data: NamedUserData


class UnblockUser(UserAdminFields, frozen=True, kw_only=True, tag="unblock"):
    data: NamedUserData


class InviteUser(UserAdminFields, frozen=True, kw_only=True, tag="invite"):
    data: InvitationData


class ListInvitations(UserAdminFields, frozen=True, kw_only=True, tag="invitations"):
    data: ListInvitationsData


class WithdrawInvitation(UserAdminFields, frozen=True, kw_only=True, tag="withdraw"):
    data: WithdrawData


class EndSessions(UserAdminFields, frozen=True, kw_only=True, tag="end_sessions"):
    data: EndSessionsData


class OpenPhoneData(NamedUserData, frozen=True, kw_only=True):
    reason: str = ""


class OpenPhone(UserAdminFields, frozen=True, kw_only=True, tag="open_phone"):
    """Accept codes by text message again after too many wrong ones."""

    data: OpenPhoneData


class ResetFactors(UserAdminFields, frozen=True, kw_only=True, tag="reset_factors"):
    data: ResetFactorsData


class ExportUser(UserAdminFields, frozen=True, kw_only=True, tag="export"):
    data: NamedUserData


class EraseUser(UserAdminFields, frozen=True, kw_only=True, tag="erase"):
    data: NamedUserData


Action: TypeAlias = (
    CreateUser
    | SaveUser
    | BlockUser
    | UnblockUser
    | InviteUser
    | ListInvitations
    | WithdrawInvitation
    | EndSessions
    | ResetFactors
    | OpenPhone
    | ExportUser
    | EraseUser
)
UserAdminRequest: TypeAlias = GetUser | CheckSignIn | Action


class UserName(msgspec.Struct, frozen=True, kw_only=True):
    """What readers of an application see of the people with a record there."""

    user_id: str
    nick: str


class InvitedUserEntry(msgspec.Struct, frozen=True, kw_only=True):
    user: UserEntry
    link: str  # empty unless the account was never signed in to


class ProjectInvitationEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The same for an address with an account and for one without."""

    invited: Sequence[str]


class OpenInvitationEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An invitation that was not accepted yet; empty for what it does not give."""

    invitation_id: str
    login: str  # as it was invited
    inviter: str
    application_id: int
    role: str
    until: int  # end of the role; 0 for none
    project_id: str
    group_id: str
    created: str
    expires: str


class UserExportEntry(msgspec.Struct, frozen=True, kw_only=True):
    request_id: str  # of the request to the applications; empty when none of them has an address for it
    export: PersonalDataExport


FindNick = Callable[[int, str], Awaitable[str | None]]
AccountOfFormerId = Callable[[str, int], Awaitable[str | None]]


class UserAdminServices(msgspec.Struct, frozen=True, kw_only=True):
    """What the console uses, loaded at the first request."""

    people_admin: PeopleAdmin
    doctor: SignInDoctor
    invitations: AccessInvitations
    lists: PeopleListStore
    find_nick: FindNick  # of a person with a record in the application
    account_of_former_id: AccountOfFormerId


class UserAdminEndpoint(Struct, kw_only=True, eq=False):
    load: Callable[[], UserAdminServices]
    data_requests: DataRequests
    data_export: DataExport
    authenticator: Authenticator
    cursors: Cursors
    clock: Clock
    base_url: str

    async def handle(self, request: Request) -> Response:
        body: UserAdminRequest = await read_action(request, UserAdminRequest)
        authenticated = await self.authenticator.authenticate(
            credentials_of(request, body),
            DEFAULT_POLICY,
            application_id=parse_optional_application_id(body.application_id),
        )
        if isinstance(body, GetUser):
            return data_response(await self._get(authenticated, actor_of(request, authenticated), body.data))
        if isinstance(body, CheckSignIn):
            application_id = authenticated.application_id or 0
            actor, doctor = actor_of(request, authenticated), self.load().doctor
            diagnosis = await doctor.examine(authenticated, actor, named_user(body.data), application_id)
            return data_response(diagnosis_entry(diagnosis))
        return await self._perform(actor_of(request, authenticated), body)

    async def _get(
        self, authenticated: AuthenticatedRequest, actor: Actor, data: NamedUserData
    ) -> UserEntry | UserName:
        services = self.load()
        if is_open(authenticated.rights, Operation.ADMINISTER):
            user_id = named_user(data)
            account = await services.account_of_former_id(user_id, self.clock.now())
            return user_entry(await services.people_admin.person(actor, account or user_id), self.base_url)
        refuse_about_others(authenticated)
        application_id, user_id = authenticated.named_application().application.application_id, named_user(data)
        nick = await services.find_nick(application_id, user_id)
        if nick is None:
            raise PersonNotFound
        return UserName(user_id=user_id, nick=nick)

    async def _perform(self, actor: Actor, body: Action) -> Response:
        people = self.load().people_admin
        match body:
            case CreateUser(data=data):
                return data_response(user_entry(await self._create(actor, data), self.base_url))
            case SaveUser(data=data):
                version = None if data.version is UNSET else data.version
                fields = given_changes(data) | await self._picture_field(actor, data, named_user(data))
                saved = await people.save_fields(actor, named_user(data), fields, version=version)
                return data_response(user_entry(saved, self.base_url))
            case BlockUser() | UnblockUser():
                await people.block(actor, named_user(body.data), blocked=isinstance(body, BlockUser))
                return data_response(user_entry(await people.person(actor, named_user(body.data)), self.base_url))
            case InviteUser() | ListInvitations() | WithdrawInvitation():
                return await self._manage_invitations(actor, body)
            case EndSessions():
                await self._end_sessions(actor, body.data)
            case ResetFactors():
                await self._reset_factors(actor, body.data)
            case OpenPhone():
                await people.open_phone(actor, named_user(body.data), reason=body.data.reason)
            case ExportUser():
                return await self._export(actor, body.data)
            case EraseUser():
                await people.erase(actor, named_user(body.data))
            case _:
                assert_never(body)
        return ok_response()

    async def _create(self, actor: Actor, data: NewAccountData) -> User:
        """Create the account without an email; `invite` sends one. Its ID is always generated."""
        if data.user_id is not UNSET:
            raise Malformed("data.user_id: is generated")
        fields = given_changes(data) | await self._picture_field(actor, data)
        return await self.load().people_admin.create(
            actor,
            login=fields.pop("login", ""),
            nick=fields.pop("nick", ""),
            lang=fields.pop("lang", "en"),
            password=data.password or None,
            more=fields,
        )

    async def _picture_field(self, actor: Actor, data: AccountData, user_id: str = "") -> dict[str, NewImage]:
        """Return the change of the picture; none if the request does not name a picture."""
        if data.picture is UNSET:
            return {}
        return {"picture": await self.load().people_admin.load_picture(actor, data.picture, user_id)}

    async def _manage_invitations(
        self, actor: Actor, body: InviteUser | ListInvitations | WithdrawInvitation
    ) -> Response:
        """Those into a project are for its managers, those of an account for administrators."""
        if isinstance(body, InviteUser):
            return data_response(await self._invite(actor, body.data))
        if isinstance(body, ListInvitations):
            return await self._list_invitations(actor, body.data)
        invitations, project_id = self.load().invitations, body.data.project_id
        if project_id:
            await invitations.withdraw(actor, project_id, body.data.invitation_id)
        else:
            await invitations.withdraw_of(actor, named_user(body.data), body.data.invitation_id)
        return ok_response()

    async def _list_invitations(self, actor: Actor, data: ListInvitationsData) -> Response:
        invitations, about = self.load().invitations, data.project_id or named_user(data)
        binding = f"invitations:{actor.user_id}:{bool(data.project_id)}:{about}"
        after = NEWEST
        if data.after is not None:
            after = msgspec.convert(self.cursors.open(binding, data.after), InvitationPosition)
        read = invitations.open_into if data.project_id else invitations.open_of
        page = await read(actor, about, after, data.limit)
        return untagged_response(
            ListResponse(
                status="OK",
                data=[open_invitation_entry(one) for one in page.invitations],
                after=None if page.after is None else self.cursors.issue(binding, page.after),
            )
        )

    async def _invite(self, actor: Actor, data: InvitationData) -> InvitedUserEntry | ProjectInvitationEntry:
        """Invite an address, or send an existing account a link to set a password."""
        people, lang = self.load().people_admin, "en" if data.lang is UNSET else data.lang
        if data.project_id:
            invited = await self.load().invitations.invite_to_project(
                actor, data.project_id, [data.login or ""], lang=lang, access=data.access
            )
            return ProjectInvitationEntry(invited=invited)
        if data.user_id is UNSET:
            invitation: Invitation | None = await people.invite(
                actor, login=data.login or "", nick=data.nick or "", lang=lang, access=data.access
            )
        else:
            invitation = await people.send_password_link(actor, named_user(data))
        user = invitation.user if invitation else await people.person(actor, named_user(data))
        link = f"{self.base_url}{invitation.path}" if invitation and invitation.path else ""
        return InvitedUserEntry(user=user_entry(user, self.base_url), link=link)

    async def _end_sessions(self, actor: Actor, data: EndSessionsData) -> None:
        people, user_id = self.load().people_admin, named_user(data)
        await people.person(actor, user_id)
        if isinstance(data.client_id, str):
            await people.disconnect(actor, user_id, data.client_id)
        elif isinstance(data.session_id, str):
            await people.end_session(actor, user_id, data.session_id)
        else:
            await people.sign_out(actor, user_id, keep=None)

    async def _reset_factors(self, actor: Actor, data: ResetFactorsData) -> None:
        people, user_id = self.load().people_admin, named_user(data)
        if data.factor == ALL_FACTORS:
            await people.remove_all_factors(actor, user_id, reason=data.reason)
        else:
            factor = Factor(data.factor)
            await people.remove_factor(actor, user_id, factor, reason=data.reason, passkey_id=data.passkey_id)

    async def _export(self, actor: Actor, data: NamedUserData) -> Response:
        """Export what is stored here and what applications answered so far, and ask them again.

        It is streamed, because applications may have answered with many megabytes.
        """
        user = await self.load().people_admin.person(actor, named_user(data))
        export = await self.data_export.export_user(user, actor.origin)
        request_id = await self.data_requests.request_export(user.user_id, actor.origin)
        answer = DataResponse(status="OK", data=UserExportEntry(request_id=request_id, export=export))
        return StreamingResponse(iter_json_chunks(lambda: answer), 200, NO_STORE, media_type="application/json")

    def endpoint(self) -> Endpoint:
        return permission_endpoint(
            "user",
            self.handle,
            name="user",
            request=UserAdminRequest,
            section="interface §4.14",
            summary=(
                "Account: get, check_sign_in, create, save, block, unblock, invite, invitations, withdraw, "
                "end_sessions, reset_factors, open_phone, export, erase"
            ),
            body_limit=SCHEMA_BODY_LIMIT,  # a picture as a data URL
        )


def open_invitation_entry(invitation: AccessInvitation) -> OpenInvitationEntry:
    access = invitation.access
    return OpenInvitationEntry(
        invitation_id=invitation.invitation_id,
        login=invitation.login,
        inviter=invitation.inviter,
        application_id=access.application_id if access.role else 0,
        role=access.role,
        until=access.end,
        project_id=invitation.invited_into,
        group_id=access.group_id,
        created=iso8601(invitation.created_at),
        expires=iso8601(invitation.expires_at),
    )


def named_user(data: AccountData | NamedUserData) -> str:
    if data.user_id is UNSET:
        raise Malformed("data.user_id: required")
    return grammar.check_user_id(data.user_id, "data.user_id")


def given_changes(data: AccountData) -> dict[str, Any]:
    """Return the given fields but the picture; null clears where a field can be empty (R6)."""
    values = [(field, field.value_of(data)) for field in ACCOUNT_FIELDS if field.kind is not Kind.IMAGE]
    return {field.name: field_value(field, value) for field, value in values if value is not UNSET}


def field_value(field: DescribedField[AccountField], value: Any) -> object:  # noqa: ANN401 - the type of the field
    if field.kind is Kind.LABELS:
        return read_labels(labels_of(value), f"data.{field.name}")
    return value if field.kind is Kind.FLAG else value or ""


def labels_of(value: object) -> list[object]:
    return value if isinstance(value, list) else []
