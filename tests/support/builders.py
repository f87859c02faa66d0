"""Builders of small records; a test passes only the fields it is about."""

from typing import Any, Final

from msgspec.structs import replace

from gatehouse.accounts.email_links import NO_USER_ID
from gatehouse.accounts.model import EnabledMethods, Identity, PendingRegistrationRecord, SetupLink, User
from gatehouse.accounts.second_factors.model import Passkey
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.audit.recorder import Recorder
from gatehouse.gamesessions.model import GameSession, SessionConfirmation
from gatehouse.kernel.ids import new_user_id
from gatehouse.oauth.model import Client, ClientSecret, SecretKind
from tests.support.clock import MovableClock

NOW = 1_800_000_000
# What people may sign in with in tests of the storage.
ALL_METHODS: Final = EnabledMethods(by_username=True, providers=("google", "steam", "vendor"))
ISSUER = "https://accounts.google.com"
AUDIT_KEY = bytes(range(32))
ORIGIN = AuditOrigin(actor="test", address="192.0.2.7", request_id="r1")
RECORDER = Recorder(mac_key=AUDIT_KEY, clock=MovableClock(NOW))


def a_pending_registration() -> PendingRegistrationRecord:
    return PendingRegistrationRecord(
        browser=b"browser", user_id=NO_USER_ID, sealed=b"sealed", created_at=NOW, expires_at=NOW + 3_600
    )


def a_user(**fields: Any) -> User:
    user_id = new_user_id()
    user = User(user_id=user_id, login=f"{user_id}@studio.example", nick="Anna", reg_time=NOW)
    return replace(user, **fields)


def an_identity(user_id: str, subject: str = "0", **fields: Any) -> Identity:
    identity = Identity(
        issuer=ISSUER,
        subject=subject,
        user_id=user_id,
        provider="google",
        label="kim",
        created_at=NOW,
        used_at=NOW,
    )
    return replace(identity, **fields)


def a_record(
    event: AuditEvent = AuditEvent.USER_CREATED, subject: str = "1000000001", **personal: str
) -> AuditRecord:
    return RECORDER.record(event, ORIGIN, subject=subject, details={"n": 1}, personal=personal)


def a_confirmation(gsid: str, user: User) -> SessionConfirmation:
    return SessionConfirmation(gsid=gsid, user_id=user.user_id, rev=user.rev, auth="login")


def a_setup_link(digest: bytes, **fields: Any) -> SetupLink:
    return replace(SetupLink(digest=digest, created_at=NOW, expires_at=NOW + 1_800), **fields)


PASSKEY_HOST: Final = "localhost"  # where test services are


def a_passkey(**fields: Any) -> Passkey:
    passkey = Passkey(
        credential_id=b"key", user_id="1000000001", public_key=b"", sign_count=0, name="Laptop", created_at=NOW
    )
    return replace(passkey, **fields)


def a_client(client_id: str = "web", **fields: Any) -> Client:
    client = Client(client_id=client_id, name="Web shop", redirect_hosts=("localhost",), created_at=NOW)
    return replace(client, secrets=(a_client_secret(),), **fields)


def a_client_secret(**fields: Any) -> ClientSecret:
    return replace(ClientSecret(kind=SecretKind.SHA256, secret=b"digest", created_at=NOW), **fields)


def a_game_session(gsid: str = "g1", **fields: Any) -> GameSession:
    session = GameSession(
        gsid=gsid,
        location=b"location",
        address="192.0.2.7",
        address_proven=True,
        options=b"sealed",
        holder="here",
        created_at=NOW,
        ends_at=NOW + 120,
    )
    return replace(session, **fields)
