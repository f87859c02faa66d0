"""POST /api/permissions/settings.

The settings and status of the installation, as the console shows them (interface §4.14).
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Literal, Protocol, TypeAlias

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.authentication.credentials import DEFAULT_POLICY
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.rights.actor import Actor
from gatehouse.web.api.health import CheckResult
from gatehouse.web.api.permissions.authentication import CredentialFields, NoData, actor_of, credentials_of
from gatehouse.web.api.permissions.envelope import data_response, permission_endpoint
from gatehouse.web.http.parse import read_action
from gatehouse.web.http.routing import SCHEMA_BODY_LIMIT, Endpoint

PartName = Literal["configuration", "branding", "policies", "risks", "health", "keys", "email", "phone"]


class SettingsPartData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    part: PartName | None = None
    page: Annotated[int, Meta(ge=1, le=400_000)] = 1  # this and the next: of the email outbox
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 25


class SettingsData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The new values by name, null for the default.

    A logo is saved as the https URL of an image, which is fetched once, or as a data URL.
    """

    settings: dict[str, object] = {}
    part: PartName | None = None  # of a part that is sent back; ignored


class KeyRotationData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    purpose: str = ""  # this and the next as the part `keys` names them
    alg: str = ""
    manner: Literal["planned", "at_once", "distrust"] = "planned"


class GetSettingsPart(CredentialFields, frozen=True, kw_only=True, tag_field="action", tag="get"):
    data: SettingsPartData = SettingsPartData()


class SaveSettings(CredentialFields, frozen=True, kw_only=True, tag_field="action", tag="save"):
    data: SettingsData = SettingsData()


class RotateKey(CredentialFields, frozen=True, kw_only=True, tag_field="action", tag="rotate_key"):
    data: KeyRotationData = KeyRotationData()


class SendTestEmail(CredentialFields, frozen=True, kw_only=True, tag_field="action", tag="test_email"):
    data: NoData = NoData()


class TestMessageData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    phone: str


class SendTestMessage(CredentialFields, frozen=True, kw_only=True, tag_field="action", tag="test_message"):
    data: TestMessageData


SettingsRequest: TypeAlias = GetSettingsPart | SaveSettings | RotateKey | SendTestEmail | SendTestMessage


class SettingsPart(msgspec.Struct, frozen=True, kw_only=True, tag_field="part", tag=""):
    """The field that every part has: its name."""


class SettingEntry(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    value: str  # a secret's is masked
    unit: str
    meaning: str
    source: str
    changeable: bool  # by `save`


class ConfigurationPart(SettingsPart, frozen=True, kw_only=True, tag="configuration"):
    settings: tuple[SettingEntry, ...]


class ColorEntry(msgspec.Struct, frozen=True, kw_only=True):
    theme: str  # light, dark
    use: str  # link, button
    colour: str
    contrast: float  # the lowest contrast on any background
    adapted: bool


class BrandingPart(SettingsPart, frozen=True, kw_only=True, tag="branding"):
    settings: tuple[SettingEntry, ...]
    colours: tuple[ColorEntry, ...]  # none as long as no accent is set


class PolicyEntry(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    settings: tuple[SettingEntry, ...]


class PoliciesPart(SettingsPart, frozen=True, kw_only=True, tag="policies"):
    policies: tuple[PolicyEntry, ...]


class RiskEntry(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    serious: bool
    setting: str  # "" for a flag of the command line
    value: str


class RisksPart(SettingsPart, frozen=True, kw_only=True, tag="risks"):
    risks: tuple[RiskEntry, ...]


class HealthPart(SettingsPart, frozen=True, kw_only=True, tag="health"):
    status: str
    checks: dict[str, CheckResult]
    version: str
    started: str
    database: str  # SQLite, PostgreSQL
    database_version: str
    megabytes: int
    schema: str
    workers: int
    python: str
    sealed: int  # records of the audit log
    sealed_at: str
    unsealed_since: str


class SigningKeyEntry(msgspec.Struct, frozen=True, kw_only=True):
    kid: str
    alg: str
    state: str
    published: str
    signs_from: str
    signs_until: str
    verifies_until: str


class KeyLineEntry(msgspec.Struct, frozen=True, kw_only=True):
    purpose: str
    alg: str
    keys: tuple[SigningKeyEntry, ...]  # the newest first


class KeysPart(SettingsPart, frozen=True, kw_only=True, tag="keys"):
    rotate_days: int
    lines: tuple[KeyLineEntry, ...]


class MailServerEntry(msgspec.Struct, frozen=True, kw_only=True):
    host: str
    port: int
    security: str
    username: str
    sender: str


class MailEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Email in the outbox, without recipient and content, which are encrypted until sent (S-03)."""

    mail_id: str
    letter: str
    written: str
    tries: int
    next_try: str  # "": failed
    trouble: str


class EmailPart(SettingsPart, frozen=True, kw_only=True, tag="email"):
    server: MailServerEntry | None
    waiting: int
    given_up: int
    oldest: str
    trouble: str
    letters: tuple[MailEntry, ...]
    total: int
    page: int
    pages: int


class TestEmailPart(SettingsPart, frozen=True, kw_only=True, tag="test_email"):
    """The answer of `test_email`."""

    sent: bool
    trouble: str  # what the mail server answered; "" if it took the email


class PhonePart(SettingsPart, frozen=True, kw_only=True, tag="phone"):
    sent: int  # text messages in 24 hours
    most: int  # that are sent in 24 hours
    waiting: int
    failed: int
    trouble: str


class TestMessagePart(SettingsPart, frozen=True, kw_only=True, tag="test_message"):
    """The answer of `test_message`."""

    sent: bool
    trouble: str  # what the sender answered; "" if it took the message


AnySettingsPart = (
    ConfigurationPart
    | BrandingPart
    | PoliciesPart
    | RisksPart
    | HealthPart
    | KeysPart
    | EmailPart
    | PhonePart
    | TestEmailPart
    | TestMessagePart
)


class SettingsResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    data: AnySettingsPart


class SettingsPartReader(Protocol):
    async def part(self, actor: Actor, part: PartName, asked: SettingsPartData) -> AnySettingsPart:
        """Return one part, for administrators; raises NoRight for others."""

    async def save(self, actor: Actor, changes: Mapping[str, object]) -> AnySettingsPart:
        """Store the settings, for administrators, and return all; raises Malformed with every problem."""

    async def rotate_key(self, actor: Actor, asked: KeyRotationData) -> AnySettingsPart:
        """Rotate the signing keys of one purpose and algorithm, and return all."""

    async def send_test_email(self, actor: Actor) -> AnySettingsPart:
        """Send a test email to the caller, past the outbox, and return the server's answer."""

    async def send_test_message(self, actor: Actor, phone: str) -> AnySettingsPart:
        """Send a test message to the number, past the outbox, and return the sender's answer."""


class SettingsEndpoint(Struct, kw_only=True, eq=False):
    """`parts`: loaded with the first request."""

    parts: Callable[[], SettingsPartReader]
    authenticator: Authenticator

    async def handle(self, request: Request) -> Response:
        body: SettingsRequest = await read_action(request, SettingsRequest)
        actor = actor_of(
            request, await self.authenticator.authenticate(credentials_of(request, body), DEFAULT_POLICY)
        )
        parts = self.parts()
        match body:
            case SaveSettings():
                return data_response(await parts.save(actor, body.data.settings))
            case RotateKey():
                return data_response(await parts.rotate_key(actor, body.data))
            case SendTestEmail():
                return data_response(await parts.send_test_email(actor))
            case SendTestMessage():
                return data_response(await parts.send_test_message(actor, body.data.phone))
            case GetSettingsPart():
                if body.data.part is None:
                    raise Malformed("data.part is required")
                return data_response(await parts.part(actor, body.data.part, body.data))

    def endpoint(self) -> Endpoint:
        return permission_endpoint(
            "settings",
            self.handle,
            name="settings",
            request=SettingsRequest,
            section="interface §4.14",
            summary="Installation: settings, branding, policies, risks, health, signing keys, email, text messages",
            answers=SettingsResponse,
            body_limit=SCHEMA_BODY_LIMIT,  # a logo as a data URL
        )
