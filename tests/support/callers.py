"""An authenticator over facts and keys in memory, and the credentials a caller may send."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec.structs import replace

from gatehouse.audit.model import AuditRecord
from gatehouse.kernel.addresses import parse_address
from gatehouse.kernel.digests import hmac_sha256
from gatehouse.permissions.authentication.access_keys import AccessKeyVerifier
from gatehouse.permissions.authentication.authenticator import PRINCIPAL_RATE_CLASS, Authenticator
from gatehouse.permissions.authentication.credentials import KeySignature, RequestCredentials
from gatehouse.permissions.authentication.jwts import CallerJwtVerifier
from gatehouse.permissions.authentication.service_jwts import ServiceJwtVerifier
from gatehouse.permissions.commands.access_keys import stored_access_key
from gatehouse.permissions.evaluation.loader import PermissionLoader
from gatehouse.permissions.model.access_key import AccessKey
from gatehouse.permissions.model.condition import ConditionSubject
from gatehouse.permissions.model.facts import Facts, ProjectModel
from gatehouse.permissions.model.project import Project
from gatehouse.permissions.model.service_account import ServiceAccount
from gatehouse.permissions.model.service_token import FoundServiceToken, ServiceToken
from gatehouse.throttle.limits import AttemptLimit, AttemptLimiter
from gatehouse.throttle.rate_limiter import RateLimit, RateLimiter
from gatehouse.tokens.claims import (
    ExchangedUserClaims,
    ServiceAccountClaims,
    StaticServiceClaims,
    UserJwtClaims,
    factor_digest,
)
from tests.support.keys import NOW, KeysInMemory, master_keys
from tests.support.tokens import APPLICATION, TokenSetup, example_claims, token_setup

DAY: Final = 86_400
OTHER: Final = 50002
PERSON: Final = "1234567890"
ROBOT: Final = "5000000001"
FACTOR: Final = "the device"
KEY: Final = "a1" * 32
OTHER_KEY: Final = "b2" * 32
CLIENT: Final = "198.51.100.7"
REVISION: Final = 3


class PermissionsInMemory:
    """The read methods of PermissionStore that identifying callers needs."""

    def __init__(self, signing_keys: KeysInMemory) -> None:
        self.signing_keys = signing_keys
        self.facts_of: dict[str, Facts] = {}
        self.stored_projects: dict[str, Project] = {}
        self.version = 1
        self.asked: list[tuple[str, frozenset[int]]] = []
        self.projects_read = 0

    async def facts(
        self, user_id: str, application_ids: Collection[int], project_ids: Collection[str] = ()
    ) -> Facts | None:
        self.asked.append((user_id, frozenset(application_ids)))
        user_facts = self.facts_of.get(user_id)
        if user_facts is None:
            return None
        versions = {
            one: self.version if one in self.stored_projects else 0 for one in {*project_ids, *user_facts.projects}
        }
        return replace(user_facts, project_versions=versions, keys_version=self.signing_keys.stored.version)

    async def projects(self, project_ids: Collection[str]) -> Mapping[str, ProjectModel]:
        self.projects_read += 1
        none: frozenset[int] = frozenset()
        return {
            one: ProjectModel(project=project, groups={}, applications=none, services=none, version=self.version)
            for one, project in self.stored_projects.items()
            if one in project_ids
        }


class ApplicationKeysInMemory:
    """The ApplicationKeyStore methods about proofs."""

    def __init__(self, signing_keys: KeysInMemory) -> None:
        self.signing_keys = signing_keys
        self.keys = [a_key(APPLICATION, KEY), a_key(OTHER, OTHER_KEY)]
        self.tokens: dict[str, ServiceToken] = {}
        self.removed: set[int] = set()
        self.uses: list[tuple[str, int]] = []

    async def access_keys(self, application_id: int) -> Sequence[AccessKey]:
        return [key for key in self.keys if key.application_id == application_id]

    async def access_key_by_digest(self, digest: bytes) -> AccessKey | None:
        live = [key for key in self.keys if key.application_id not in self.removed]
        return next((key for key in live if key.digest == digest), None)

    async def record_access_key_use(self, key_id: str, now: int, not_before: int) -> None:
        [index] = [index for index, key in enumerate(self.keys) if key.key_id == key_id]
        if self.keys[index].last_used < not_before:
            self.keys[index] = replace(self.keys[index], last_used=now)
        self.uses.append((key_id, now))

    async def service_token(self, jti: str) -> FoundServiceToken | None:
        token = self.tokens.get(jti)
        if token is None or token.application_id in self.removed:
            return None
        return FoundServiceToken(token=token, keys_version=self.signing_keys.stored.version)

    async def add_service_token(self, token: ServiceToken, records: Sequence[AuditRecord]) -> None:
        assert records
        self.tokens[token.jti] = token


class UnlimitedGuesses:
    """A guess limiter that counts guesses and never blocks."""

    def __init__(self) -> None:
        self.counted = 0

    async def blocked_until(self, _subjects: Sequence[str]) -> int:
        return 0

    async def begin_attempts(self, subjects: Sequence[tuple[str, AttemptLimit]], _now: int) -> None:
        self.counted += len(subjects)


class GrantsInMemory:
    def __init__(self) -> None:
        self.live = {"g1"}

    async def is_live(self, grant_id: str) -> bool:
        return grant_id in self.live


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerSetup:
    tokens: TokenSetup
    permissions: PermissionsInMemory
    keys: ApplicationKeysInMemory
    grants: GrantsInMemory
    attempts: UnlimitedGuesses
    authenticator: Authenticator

    async def user_jwt(self, **changes: object) -> str:
        """A JWT of the person, bound to FACTOR unless `changes` says otherwise."""
        claims = {"fac": factor_digest(FACTOR, "salt"), "exp": NOW + 90 * DAY, **changes}
        return await self.tokens.signer.sign(example_claims(UserJwtClaims, **claims))

    async def exchanged_jwt(self, **changes: object) -> str:
        return await self.tokens.signer.sign(example_claims(ExchangedUserClaims, **changes))

    async def robot_jwt(self, **changes: object) -> str:
        claims = {
            "uid": ROBOT,
            "sub": ROBOT,
            "rev": REVISION,
            "jti": "of the robot",
            "exp": NOW + 90 * DAY,
            **changes,
        }
        return await self.tokens.signer.sign(example_claims(ServiceAccountClaims, **claims))

    async def service_jwt(self, application_id: int = APPLICATION, **changes: object) -> str:
        """A stored service token, so that it is accepted."""
        jti = f"of {application_id}"
        self.keys.tokens[jti] = ServiceToken(jti=jti, application_id=application_id, created_at=NOW, ends_at=NOW)
        claims = {"aud": str(application_id), "jti": jti, "exp": NOW + 90 * DAY, **changes}
        return await self.tokens.signer.sign(example_claims(StaticServiceClaims, **claims))

    def change_facts(self, user_id: str = PERSON, **changes: Any) -> None:
        """Change facts about the user."""
        self.permissions.facts_of[user_id] = replace(self.permissions.facts_of[user_id], **changes)


async def find_no_token(_token: str, _scope: str) -> None:
    return None


async def find_no_bans(_user_id: str, _factor: str) -> tuple[()]:
    return ()


@asynccontextmanager
async def caller_setup(*, per_minute: int = 1_000_000) -> AsyncIterator[CallerSetup]:
    with ThreadPoolExecutor(1) as executor:
        tokens = await token_setup(executor)
        permissions, keys, grants, attempts = (
            PermissionsInMemory(tokens.store),
            ApplicationKeysInMemory(tokens.store),
            GrantsInMemory(),
            UnlimitedGuesses(),
        )
        permissions.facts_of = {PERSON: facts_of(PERSON), ROBOT: facts_of(ROBOT, service_account=a_robot())}
        permissions.stored_projects = {"mind_games": a_project("mind_games")}
        guesses = AttemptLimiter(store=attempts, limit=AttemptLimit(), clock=tokens.clock)  # type: ignore[arg-type]
        jwts = CallerJwtVerifier(tokens.verifier)
        authenticator = Authenticator(
            permission_loader=PermissionLoader(store=permissions, clock=tokens.clock),  # type: ignore[arg-type]
            user_jwts=jwts,
            service_jwts=ServiceJwtVerifier(store=keys, jwts=jwts),  # type: ignore[arg-type]
            access_keys=AccessKeyVerifier(store=keys, masters=master_keys(), limiter=guesses, clock=tokens.clock),  # type: ignore[arg-type]
            find_token_owner=find_no_token,
            is_grant_live=grants.is_live,
            find_device_bans=find_no_bans,
            volume=RateLimiter({PRINCIPAL_RATE_CLASS: RateLimit(per_minute)}, clock=tokens.clock),
            clock=tokens.clock,
            grace=30 * DAY,
        )
        yield CallerSetup(
            tokens=tokens,
            permissions=permissions,
            keys=keys,
            grants=grants,
            attempts=attempts,
            authenticator=authenticator,
        )


def facts_of(user_id: str, **fields: Any) -> Facts:
    facts = Facts(
        subject=ConditionSubject(user_id=user_id),
        login=None,
        blocked=False,
        rev=REVISION,
        has_strong_factor=False,
    )
    return replace(facts, **fields)


def a_robot(**fields: Any) -> ServiceAccount:
    robot = ServiceAccount(
        user_id=ROBOT,
        project_id="mind_games",
        name="ci",
        created_by=PERSON,
        created_at=NOW,
        jti="of the robot",
    )
    return replace(robot, **fields)


def a_project(project_id: str, **fields: Any) -> Project:
    return replace(Project(project_id=project_id, title=project_id, author=PERSON, created_at=NOW), **fields)


def a_key(application_id: int, value: str) -> AccessKey:
    return stored_access_key(value, application_id, "", masters=master_keys(), now=NOW).key


def credentials_from_client(**fields: Any) -> RequestCredentials:
    """Credentials as they arrive on CLIENT's own connection."""
    return replace(RequestCredentials(address=parse_address(CLIENT), source=CLIENT), **fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSigner:
    """Sign requests with an access key."""

    key: str = KEY
    application_id: str = str(APPLICATION)
    ip: str = CLIENT
    ts: int = NOW
    tampered: dict[str, Any] = field(default_factory=dict)  # after signing

    def sign(self) -> KeySignature:
        honest = KeySignature(
            signature="",
            application_id=self.application_id,
            method="POST",
            path=b"/api/permissions/meta/data",
            query=b"",
            body=f'{{"ip":"{self.ip}","ts":{self.ts}}}'.encode(),
            ip=self.ip,
            ts=self.ts,
        )
        signature = hmac_sha256(self.key.encode(), honest.message).hex()
        return replace(replace(honest, signature=signature), **self.tampered)
