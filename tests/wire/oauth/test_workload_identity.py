"""Workload identities: tokens of Kubernetes, GitHub, GitLab and SPIFFE authenticate a client (R11, WI)."""

import hmac
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from joserfc import jwt
from joserfc.jwk import ECKey, OKPKey, RSAKey

from gatehouse.accounts.model import User
from gatehouse.audit.events import AuditEvent
from gatehouse.cli.doctor_network import about_workloads
from gatehouse.cli.findings import CheckedInstallation, Level
from gatehouse.oauth.client_commands import new_stored_secret
from gatehouse.oauth.errors import BadClient
from gatehouse.oauth.grants.token_exchange import ACCESS_TOKEN
from gatehouse.oauth.vocabulary import GrantName
from gatehouse.oauth.workloads.model import WorkloadIdentity
from tests.support.builders import a_record
from tests.support.client_documents import DocumentServer, run_document_server
from tests.support.database_contents import read_all_tables
from tests.support.delegation import RESOURCE, some_agents
from tests.support.oauth import TOKEN, a_public_client, an_oidc_client, base64url, oauth_error, success_body
from tests.support.service import RunningService, running_service
from tests.support.stub_server import StubServer, http_response, run_stub_server
from tests.support.studio import Studio, a_studio, audit_records

JWT_BEARER: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
DISCOVERY: Final = "/.well-known/openid-configuration"
KEYS: Final = "/openid/v1/jwks"
UNPROVED: Final = (401, "invalid_client")
HOUR: Final = 3_600
DAY: Final = 86_400
NEW_KEY: Final[Mapping[str, Any]] = {
    "RS256": lambda: RSAKey.generate_key(2048),
    "PS256": lambda: RSAKey.generate_key(2048),
    "ES256": lambda: ECKey.generate_key("P-256"),
    "ES384": lambda: ECKey.generate_key("P-384"),
    "EdDSA": lambda: OKPKey.generate_key("Ed25519"),
}


@dataclass(kw_only=True)
class Issuer:
    """A server of workload tokens: its discovery document, its keys, and what it signs."""

    server: DocumentServer
    service: RunningService
    alg: str = "RS256"
    kid: str = "k1"
    key: Any = None
    header: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.key = NEW_KEY[self.alg]()

    @property
    def url(self) -> str:
        return self.server.url("")

    @property
    def jwks(self) -> dict[str, object]:
        return {"keys": [self.public_key(use="sig", alg=self.alg)]}

    def public_key(self, **members: str) -> dict[str, object]:
        return {**self.key.as_dict(private=False), "kid": self.kid, **members}

    def publish(self) -> None:
        self.server.documents[DISCOVERY] = {
            "issuer": self.url,
            "jwks_uri": self.server.url(KEYS),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [self.alg],
        }
        self.server.documents[KEYS] = self.jwks

    def rotate(self, kid: str) -> None:
        """Sign with a new key from now on; the caller publishes it."""
        self.kid, self.key = kid, NEW_KEY[self.alg]()

    def token(self, claims: Mapping[str, object], header: Mapping[str, object] | None = None, **changes: Any) -> str:
        now = self.service.clock.now()
        base = {"iss": self.url, "aud": self.service.base_url, "iat": now, "nbf": now, "exp": now + HOUR}
        wanted = {name: value for name, value in {**base, **claims, **changes}.items() if value is not None}
        head = {"alg": self.alg, "kid": self.kid, **self.header, **(header or {})}
        head = {name: value for name, value in head.items() if value is not None}
        registry = jwt.JWSRegistry(algorithms=[self.alg], strict_check_header=False)
        return jwt.encode(head, wanted, self.key, registry=registry)


# What the issuers put into their tokens, in shape.
KUBERNETES: Final[Mapping[str, Any]] = {
    "sub": "system:serviceaccount:shop:worker",
    "jti": "a5a4d1c2-0a9b-4b0e-8f3b-6d7b5a2f9c01",
    "kubernetes.io": {
        "namespace": "shop",
        "node": {"name": "node-1", "uid": "646e7c5e"},
        "pod": {"name": "worker-69dbd4b7c8-4s2xk", "uid": "5f1b6a1e"},
        "serviceaccount": {"name": "worker", "uid": "14ee3fa4"},
    },
}
GITHUB: Final[Mapping[str, Any]] = {
    "jti": "1f3e8a5c",
    "sub": "repo:octo-org/octo-repo:environment:production",
    "environment": "production",
    "ref": "refs/heads/main",
    "sha": "25e0f0ac",
    "repository": "octo-org/octo-repo",
    "repository_owner": "octo-org",
    "repository_id": "74",
    "repository_owner_id": "65",
    "run_id": "11021",
    "run_attempt": "1",
    "runner_environment": "github-hosted",
    "event_name": "push",
    "job_workflow_ref": "octo-org/octo-repo/.github/workflows/deploy.yml@refs/heads/main",
}
GITLAB: Final[Mapping[str, Any]] = {
    "namespace_id": "72",
    "namespace_path": "my-group",
    "project_id": "20",
    "project_path": "my-group/my-project",
    "user_id": "1",
    "pipeline_id": "574",
    "job_id": "302",
    "ref": "main",
    "ref_type": "branch",
    "ref_protected": "true",
    "runner_id": 1,
    "runner_environment": "gitlab-hosted",
    "jti": "235b3a54",
    "sub": "project_path:my-group/my-project:ref_type:branch:ref:main",
}
SPIFFE: Final[Mapping[str, Any]] = {
    "sub": "spiffe://prod.example/ns/shop/sa/worker",
    "iss": None,
    "nbf": None,
}


@pytest.fixture
async def documents(tmp_path: Path) -> AsyncIterator[DocumentServer]:
    async with run_document_server(tmp_path) as running:
        yield running


@pytest.fixture
async def service(installed_url: str, tmp_path: Path, documents: DocumentServer) -> AsyncIterator[RunningService]:
    given = {name: value for name, value in documents.settings.items() if "OUTBOUND" in name}
    async with running_service(installed_url, tmp_path, environment=given) as running:
        yield running


@pytest.fixture
async def studio(service: RunningService) -> Studio:
    return await a_studio(service)


@pytest.fixture
def issuer(service: RunningService, documents: DocumentServer) -> Issuer:
    made = Issuer(server=documents, service=service)
    made.publish()
    return made


async def ask_client(studio: Studio, action: str, **data: object) -> httpx2.Response:
    body = {"action": action, "application_id": studio.shop.application_id, "data": data}
    return await studio.post("client", body, studio.owner.headers)


async def create(studio: Studio, *identities: Mapping[str, object], client_id: str = "worker") -> dict[str, Any]:
    """Create a machine with these workload identities; return it as the API does."""
    data = {"client_id": client_id, "name": "Worker", "profile": "oidc", "machine": True}
    made = await ask_client(studio, "create", **data, workload_identities=list(identities))
    assert made.status_code == 200, made.text
    found: dict[str, Any] = made.json()["data"]
    return found


async def present(service: RunningService, token: str, **changes: str) -> httpx2.Response:
    fields = {
        "grant_type": "client_credentials",
        "client_id": "worker",
        "client_assertion_type": JWT_BEARER,
        "client_assertion": token,
        **changes,
    }
    return await service.client.post(TOKEN, data={name: value for name, value in fields.items() if value})


async def expect_token(service: RunningService, token: str, **changes: str) -> str:
    return str(success_body(await present(service, token, **changes))["access_token"])


async def refusals(service: RunningService) -> list[str]:
    """The reasons of refused clients, the newest first."""
    rows = (await read_all_tables(service.services.storage))["audit_refusals"]
    newest = sorted(rows, key=lambda row: -row.position)
    return [row.reason for row in newest if row.event == AuditEvent.CLIENT_REFUSED.value]


@pytest.mark.both_databases
async def test_wi_01_a_kubernetes_service_account_authenticates_a_client(
    studio: Studio, service: RunningService, issuer: Issuer
) -> None:
    """The audience is a list, the header has no typ, and the keys are found by discovery."""
    made = await create(
        studio,
        {
            "issuer": issuer.url,
            "subject": "system:serviceaccount:shop:*",
            "claims": {"kubernetes.io/namespace": "shop", "kubernetes.io/serviceaccount/name": "worker"},
            "discovery": True,
        },
    )
    assert "client_secret" not in made
    assert made.get("secrets", []) == []
    token = issuer.token(KUBERNETES, aud=[service.base_url])
    for _ in range(2):  # a program reads it from a file until it ends
        await expect_token(service, token)
    [record] = await audit_records(studio, AuditEvent.MACHINE_TOKEN_MADE)
    assert (record.actor, record.subject) == ("client:worker", "worker")
    assert record.details["workload_issuer"] == issuer.url
    assert record.details["workload_subject"] == KUBERNETES["sub"]
    assert [one.line.split(" ")[1] for one in issuer.server.server.received] == [DISCOVERY, KEYS]
    elsewhere = {**KUBERNETES, "kubernetes.io": {**KUBERNETES["kubernetes.io"], "serviceaccount": {"name": "other"}}}
    for claims in (elsewhere, {**KUBERNETES, "kubernetes.io": "shop"}, {**KUBERNETES, "kubernetes.io": None}):
        assert oauth_error(await present(service, issuer.token(claims))) == UNPROVED
    assert set(await refusals(service)) == {"a claim of the workload's token differs"}


async def test_wi_01_a_github_workflow_authenticates_a_client(
    studio: Studio, service: RunningService, issuer: Issuer
) -> None:
    issuer.header = {"typ": "JWT", "x5t": "ykNaY4qM_ta4k2TgZOCEYLkcYlA"}
    await create(
        studio,
        {
            "issuer": issuer.url,
            "subject": "repo:octo-org/octo-repo:*",
            "claims": {"repository_id": "74", "environment": "production"},
            "audience": "https://github.com/octo-org",
            "discovery": True,
            "single_use": True,
        },
    )
    job = {**GITHUB, "aud": "https://github.com/octo-org"}
    token = issuer.token(job, exp=service.clock.now() + 300)
    await expect_token(service, token)
    assert oauth_error(await present(service, token)) == UNPROVED  # the issuer gives one for each job
    assert await refusals(service) == ["the token of the workload was used before, or has no jti"]
    await expect_token(service, issuer.token({**job, "jti": "another"}))
    for changes in (
        {"jti": None},
        {"jti": "j2", "sub": "repo:octo-org/octo-repository:environment:production"},
        {"jti": "j3", "sub": "repo:octo-org/octo-repo:"},
        {"jti": "j4", "repository_id": "75"},
        {"jti": "j5", "environment": None},
        {"jti": "j6", "aud": service.base_url},
        {"jti": "j7", "aud": ["https://github.com/octo-org", service.base_url]},
        {"jti": "j8", "aud": []},
        {"jti": "j9", "aud": None},
    ):
        assert oauth_error(await present(service, issuer.token({**job, **changes}))) == UNPROVED, changes


async def test_wi_01_a_gitlab_job_authenticates_a_client(
    studio: Studio, service: RunningService, issuer: Issuer
) -> None:
    issuer.header = {"typ": "JWT"}
    subject = str(GITLAB["sub"])
    await create(studio, {"issuer": issuer.url, "subject": subject, "jwks_uri": issuer.server.url(KEYS)})
    await expect_token(service, issuer.token(GITLAB))
    assert oauth_error(await present(service, issuer.token(GITLAB, sub=f"{subject}x"))) == UNPROVED
    assert [one.line.split(" ")[1] for one in issuer.server.server.received] == [KEYS]


async def test_wi_01_a_spiffe_identity_authenticates_a_client(
    studio: Studio, service: RunningService, documents: DocumentServer
) -> None:
    """The token has no iss, and the bundle has keys of other uses beside those for JWT-SVIDs."""
    spire = Issuer(server=documents, service=service, alg="ES256", header={"typ": "JWT"})
    other = Issuer(server=documents, service=service, alg="ES256", kid="x509", header={"typ": "JWT"})
    documents.documents["/bundle"] = {
        "keys": [other.public_key(use="x509-svid"), spire.public_key(use="jwt-svid")],
        "spiffe_sequence": 7,
        "spiffe_refresh_hint": 300,
    }
    entry = {"trust_domain": "prod.example", "subject": str(SPIFFE["sub"]), "jwks_uri": documents.url("/bundle")}
    await create(studio, entry)
    token = spire.token(SPIFFE, aud=[service.base_url], exp=service.clock.now() + 300)
    await expect_token(service, token)
    await expect_token(service, spire.token(SPIFFE, iss="https://spire.prod.example"))
    [record] = await audit_records(studio, AuditEvent.MACHINE_TOKEN_MADE)
    assert record.details["workload_issuer"] == "spiffe://prod.example"
    assert oauth_error(await present(service, other.token(SPIFFE))) == UNPROVED
    for subject in ("spiffe://prod.example.evil/ns/shop/sa/worker", "spiffe://prod.example", "worker"):
        assert oauth_error(await present(service, spire.token(SPIFFE, sub=subject))) == UNPROVED


@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
async def test_wi_02_the_key_decides_about_the_algorithm(
    studio: Studio, service: RunningService, documents: DocumentServer
) -> None:
    issuers = [Issuer(server=documents, service=service, alg=alg, kid=alg) for alg in NEW_KEY]
    keys = [one.public_key(use="sig") for one in issuers]
    keys[1] |= {"alg": "PS256"}
    await create(studio, {"issuer": documents.url(""), "subject": "worker", "jwks": {"keys": keys}})
    for one in issuers:
        await expect_token(service, one.token({"sub": "worker"}))
    by_name = {one.alg: one for one in issuers}
    by_name["PS256"].alg = "RS256"  # the set says that this key is for PS256
    assert oauth_error(await present(service, by_name["PS256"].token({"sub": "worker"}))) == UNPROVED
    by_name["RS256"].alg = "PS256"  # an RSA key that is for either
    await expect_token(service, by_name["RS256"].token({"sub": "worker"}))
    signed = by_name["ES256"].token({"sub": "worker"})
    head, payload, signature = signed.split(".")
    unsigned = base64url(b'{"alg":"none"}')
    # A public key is no secret: it must not verify what anyone can compute with it.
    hashed = base64url(b'{"alg":"HS256","kid":"RS256"}') + f".{payload}"
    public = by_name["RS256"].key.as_pem(private=False)
    with_public_key = f"{hashed}.{base64url(hmac.digest(public, hashed.encode(), 'sha256'))}"
    for forged in (
        with_public_key,
        f"{unsigned}.{payload}.",
        f"{head}.{payload}.{signature[:-4]}AAAA",
        f"{head}.{payload}",
    ):
        assert oauth_error(await present(service, forged)) == UNPROVED


async def test_wi_03_keys_named_by_the_header_and_times_outside_the_window_are_refused(
    studio: Studio, service: RunningService, issuer: Issuer
) -> None:
    await create(studio, {"issuer": issuer.url, "subject": "worker", "discovery": True})
    now = service.clock.now()
    claims = {"sub": "worker", "nbf": None}
    for header in (
        {"jku": issuer.server.url(KEYS)},
        {"x5u": issuer.server.url(KEYS)},
        {"jwk": issuer.public_key()},
    ):
        assert oauth_error(await present(service, issuer.token(claims, header))) == UNPROVED, header
    _, payload, _ = issuer.token(claims).split(".")
    extended = f"{base64url(json.dumps({'alg': 'RS256', 'kid': 'k1', 'crit': ['exp'], 'exp': 1}).encode())}.{payload}"
    signature = issuer.key.private_key.sign(extended.encode(), PKCS1v15(), SHA256())
    assert oauth_error(await present(service, f"{extended}.{base64url(signature)}")) == UNPROVED
    fine = (
        {"iat": now - HOUR - 60, "exp": now + 60},
        {"iat": now + 60},
        {"exp": now + DAY + 60},
        {"iat": None, "exp": now + HOUR + 60},
        {"iat": now - 600, "exp": now - 59},
        {"nbf": now + 60},
    )
    for changes in fine:
        await expect_token(service, issuer.token(claims, **changes))
    for changes in (
        {"iat": now - HOUR - 61, "exp": now + 60},
        {"iat": now + 61},
        {"exp": now + DAY + 61},
        {"iat": None, "exp": now + HOUR + 61},
        {"iat": now - 600, "exp": now - 60},
        {"nbf": now + 61},
        {"exp": None},
        {"exp": str(now + 60)},
        {"iat": True},
    ):
        assert oauth_error(await present(service, issuer.token(claims, **changes))) == UNPROVED, changes


async def test_wi_04_an_assertion_counts_for_the_named_client_only(
    studio: Studio, service: RunningService, issuer: Issuer
) -> None:
    """Foreign tokens and private_key_jwt are told apart by iss, and neither opens what the other does."""
    await create(studio, {"issuer": issuer.url, "subject": "worker", "discovery": True})
    keyed = {"client_id": "keyed", "name": "Keyed", "profile": "oidc", "machine": True, "jwks": issuer.jwks}
    assert (await ask_client(studio, "create", **keyed)).status_code == 200
    await a_public_client(service)
    foreign = issuer.token({"sub": "worker"})
    own = issuer.token({"iss": "keyed", "sub": "keyed", "jti": token_hex(8)}, exp=service.clock.now() + 60)
    as_worker = issuer.token({"iss": "worker", "sub": "worker", "jti": token_hex(8)})
    await expect_token(service, foreign)
    await expect_token(service, own, client_id="keyed")
    for token, client_id in (
        (foreign, ""),  # client_id is required
        (foreign, "keyed"),
        (foreign, "app"),
        (foreign, "unknown"),
        (foreign, "1000000001"),
        (issuer.token({"sub": "keyed", "jti": "j"}), "keyed"),
        (as_worker, "worker"),
    ):
        assert oauth_error(await present(service, token, client_id=client_id)) == UNPROVED, client_id
    assert oauth_error(await present(service, own, client_id="worker")) == (400, "invalid_request")
    assert oauth_error(await present(service, foreign, client_secret="x")) == (400, "invalid_request")
    assert oauth_error(await present(service, foreign, client_assertion_type="saml")) == UNPROVED
    other = {"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "subject_token": "x"}
    assert oauth_error(await present(service, foreign, **other)) == (400, "unauthorized_client")


async def test_wi_06_this_service_is_never_the_issuer(installed_url: str, tmp_path: Path) -> None:
    """Its own tokens are for others, whatever a client says."""
    machine = {"machine": True, "redirect_uris": (), "first_party": False, "scopes": ()}
    own = "https://localhost:8443"
    async with running_service(installed_url, tmp_path, environment={"GATEHOUSE__SERVER__BASE_URL": own}) as service:
        for issuer in (own, f"{own}/"):
            entry = WorkloadIdentity(issuer=issuer, subject="worker", discovery=True)
            with pytest.raises(BadClient, match="the issuer must be another service"):
                await an_oidc_client(service, "worker", workload_identities=(entry,), **machine)


@pytest.mark.both_databases
async def test_audit_names_the_workload_of_a_program_that_acts(
    service: RunningService, issuer: Issuer, anna: User
) -> None:
    agents = await some_agents(service)
    identity = WorkloadIdentity(issuer=issuer.url, subject=str(KUBERNETES["sub"]), discovery=True)
    of_worker = {"machine": True, "redirect_uris": (), "first_party": False, "scopes": ()}
    await an_oidc_client(
        service,
        "worker",
        application_id=agents.agents.application_id,
        may_act=True,
        may_act_for_others=True,
        workload_identities=(identity,),
        **of_worker,
    )
    subject = {"subject_token": (await agents.sign_in(anna))["access_token"], "subject_token_type": ACCESS_TOKEN}
    grant_type = GrantName.TOKEN_EXCHANGE.value
    await expect_token(service, issuer.token(KUBERNETES), grant_type=grant_type, resource=RESOURCE, **subject)
    rows = (await read_all_tables(service.services.storage))["audit_events"]
    (record,) = [row for row in rows if row.event == AuditEvent.DELEGATED_TOKEN_MADE.value]
    assert record.actor == "client:worker"
    assert record.details["workload_issuer"] == issuer.url
    assert record.details["workload_subject"] == KUBERNETES["sub"]


@pytest.mark.both_databases
async def test_wi_05_keys_are_kept_for_a_day_and_read_again_for_an_unknown_one_once_a_minute(
    studio: Studio, service: RunningService, issuer: Issuer
) -> None:
    def reads() -> int:
        return sum(one.line.split(" ")[1] == KEYS for one in issuer.server.server.received)

    await create(studio, {"issuer": issuer.url, "subject": "worker", "discovery": True})
    claims = {"sub": "worker"}
    await expect_token(service, issuer.token(claims))
    old = issuer.key
    issuer.rotate("k2")
    for _ in range(3):
        assert oauth_error(await present(service, issuer.token(claims))) == UNPROVED
    assert reads() == 1  # not within a minute
    issuer.publish()
    await service.clock.advance(60)
    await expect_token(service, issuer.token(claims))
    assert reads() == 2
    new, issuer.key, issuer.kid = issuer.key, old, "k1"
    assert oauth_error(await present(service, issuer.token(claims))) == UNPROVED  # it was withdrawn
    issuer.key, issuer.kid = new, "k2"
    # While the keys cannot be read, the last good ones count for a day.
    kept = issuer.server.documents.pop(KEYS)
    await service.clock.advance(DAY - 60)
    await expect_token(service, issuer.token(claims))
    assert reads() == 3
    await expect_token(service, issuer.token(claims))
    assert reads() == 3
    await service.clock.advance(60)
    assert oauth_error(await present(service, issuer.token(claims))) == UNPROVED
    assert (await refusals(service))[0] == "the keys of the workload's issuer cannot be read"
    issuer.server.documents[KEYS] = kept
    await service.clock.advance(60)
    await expect_token(service, issuer.token(claims))


async def test_wi_05_keys_are_read_from_public_https_addresses_of_the_named_issuer_only(
    studio: Studio, service: RunningService, issuer: Issuer
) -> None:
    await create(studio, {"issuer": issuer.url, "subject": "worker", "discovery": True})
    good = dict(issuer.server.documents[DISCOVERY])  # type: ignore[arg-type]
    for document in (
        {**good, "issuer": f"{issuer.url}/"},
        {**good, "jwks_uri": "https://10.0.0.1/keys"},
        {**good, "jwks_uri": issuer.server.url(KEYS).replace("https", "http")},
        {**good, "jwks_uri": "file:///etc/passwd"},
        {"issuer": issuer.url},
        http_response(status="302 Found", Location=issuer.server.url(KEYS)),
        http_response(b" " * 70_000 + json.dumps(good).encode()),
    ):
        issuer.server.documents[DISCOVERY] = document
        await service.clock.advance(60)
        assert oauth_error(await present(service, issuer.token({"sub": "worker"}))) == UNPROVED, document
    in_clear = StubServer(
        respond=lambda _: http_response(json.dumps(issuer.jwks).encode(), Content_Type="application/json")
    )
    async with run_stub_server(in_clear):
        issuer.server.documents[DISCOVERY] = {**good, "jwks_uri": f"http://127.0.0.1:{in_clear.port}/keys"}
        await service.clock.advance(60)
        assert oauth_error(await present(service, issuer.token({"sub": "worker"}))) == UNPROVED
        assert in_clear.connections == 0
    assert set(await refusals(service)) == {"the keys of the workload's issuer cannot be read"}
    issuer.server.documents[DISCOVERY] = good
    await service.clock.advance(60)
    await expect_token(service, issuer.token({"sub": "worker"}))


ENTRY: Final[Mapping[str, Any]] = {"issuer": "https://issuer.example", "subject": "worker", "discovery": True}
CLAIM: Final = {"claims": {"repository_id": "74"}}
RSA: Final = RSAKey.generate_key(2048)
BAD: Final[tuple[tuple[Mapping[str, Any], str], ...]] = (
    *(
        ({**ENTRY, **CLAIM, "subject": subject}, "subject")
        for subject in (
            *("*", "repo:*", "repo:/*", "repo:octo-*", "repo:*:environment:x", "repo:octo/*x", "octo/*", "**"),
            *("spiffe://x/*", "spiffe://x/ns/*", "system:*", "system:serviceaccount:*", "project_path:*"),
            *("a\nb", " a"),
        )
    ),
    ({**ENTRY, "subject": "repo:octo/*"}, "claims"),
    ({**ENTRY, "claims": {"sub": "worker"}}, "claims.sub"),
    ({**ENTRY, "claims": {"a//b": "x"}}, "claims.a//b"),
    ({**ENTRY, "issuer": "http://issuer.example"}, "issuer"),
    ({**ENTRY, "issuer": "https://issuer.example/?a=b"}, "issuer"),
    ({**ENTRY, "trust_domain": "prod.example"}, "issuer"),
    ({"subject": "worker", "discovery": True}, "issuer"),
    ({**ENTRY, "jwks_uri": "https://issuer.example/keys"}, "jwks"),
    ({**ENTRY, "discovery": False}, "jwks"),
    ({**ENTRY, "discovery": False, "jwks_uri": "http://issuer.example/keys"}, "jwks_uri"),
    ({**ENTRY, "discovery": False, "jwks": {"keys": []}}, "jwks"),
    ({**ENTRY, "discovery": False, "jwks": {"keys": [RSA.as_dict(private=True)]}}, "jwks"),
    ({**ENTRY, "discovery": False, "jwks": {"keys": [{"kty": "oct", "k": "AA"}]}}, "jwks"),
    ({"trust_domain": "prod.example", "subject": "spiffe://x.example/a", "jwks_uri": "https://x.example"}, "subject"),
    ({"trust_domain": "prod.example", "subject": "spiffe://prod.example/a", "discovery": True}, "discovery"),
    ({"trust_domain": "Prod", "subject": "spiffe://Prod/a", "jwks_uri": "https://x.example"}, "trust_domain"),
)  # fmt: skip


async def test_wi_06_identities_that_could_let_others_in_are_refused_with_their_place(studio: Studio) -> None:
    data = {"client_id": "worker", "name": "Worker", "profile": "oidc", "machine": True}
    for entry, member in BAD:
        answer = await ask_client(studio, "create", **data, workload_identities=[ENTRY, entry])
        assert answer.status_code == 400, entry
        assert answer.json()["error"].startswith(f"data.workload_identities[1].{member}:"), (entry, answer.text)
    for more in (
        {"machine": False, "redirect_uris": ["https://shop.example/back"]},
        {"jwks": {"keys": [{**RSA.as_dict(private=False), "use": "sig"}]}},
        {"may_exchange": True},
        {"workload_identities": [ENTRY] * 11},
        {"workload_identities": [{**ENTRY, "more": 1}]},
        {"workload_identities": [{**ENTRY, "claims": {"a": 1}}]},
    ):
        answer = await ask_client(studio, "create", **{**data, "workload_identities": [ENTRY], **more})
        assert answer.status_code == (403 if "may_exchange" in more else 400), more
    for subject in ("repo:octo/*", "repo:octo/name:*", "system:serviceaccount:shop:*", "project_path:group/*"):
        await create(studio, {**ENTRY, **CLAIM, "subject": subject}, client_id=f"w{hash(subject) & 0xFFFF}")


async def store_secret_of_another_node(service: RunningService, client_id: str, secret: str) -> None:
    """Store a secret as a node does that read the client before it got identities."""
    clients, now = service.services.storage.clients, service.clock.now()
    stored = new_stored_secret(
        await clients.client(client_id), secret, masters=service.services.core.masters, now=now
    )
    await clients.rotate_secret(client_id, stored, a_record(), old_ends_at=now + DAY)


@pytest.mark.both_databases
async def test_wi_06_a_client_has_identities_or_secrets_never_both(
    studio: Studio, service: RunningService, issuer: Issuer
) -> None:
    data = {"client_id": "worker", "name": "Worker", "profile": "oidc", "machine": True}
    secret = (await ask_client(studio, "create", **data)).json()["data"]["client_secret"]
    with_secret = {"client_assertion_type": "", "client_assertion": "", "client_secret": secret}
    await expect_token(service, "", **with_secret)
    entry = {"issuer": issuer.url, "subject": "worker", "discovery": True}
    saved = (await ask_client(studio, "save", client_id="worker", workload_identities=[entry])).json()["data"]
    assert saved["workload_identities"] == [entry]
    assert saved.get("secrets", []) == []
    assert oauth_error(await present(service, "", **with_secret)) == UNPROVED
    await expect_token(service, issuer.token({"sub": "worker"}))
    assert (await ask_client(studio, "rotate", client_id="worker")).status_code == 400
    await store_secret_of_another_node(service, "worker", "s" * 43)
    stray = {"client_id": "worker", "client_secret": "s" * 43}
    # A token would also need the workload's name; what needs the client alone must not take the secret either.
    for path in ("introspect", "revoke"):
        answer = await service.client.post(f"/proxy/oauth/{path}", data={"token": "x", **stray})
        assert oauth_error(answer) == UNPROVED, path
    assert oauth_error(await present(service, "", **{**with_secret, "client_secret": "s" * 43})) == UNPROVED
    await expect_token(service, issuer.token({"sub": "worker"}))
    assert (await ask_client(studio, "save", client_id="worker", workload_identities=None)).status_code == 200
    assert oauth_error(await present(service, issuer.token({"sub": "worker"}))) == UNPROVED
    assert oauth_error(await present(service, "", **{**with_secret, "client_secret": "s" * 43})) == UNPROVED
    again = (await ask_client(studio, "rotate", client_id="worker")).json()["data"]["client_secret"]
    await expect_token(service, "", **{**with_secret, "client_secret": again})


async def test_wi_06_doctor_tells_wildcards_and_issuers_whose_keys_cannot_be_read(
    studio: Studio, service: RunningService, issuer: Issuer
) -> None:
    services = service.services
    installation = CheckedInstallation(
        loaded=services.core.live_settings.current,
        storage=services.storage,
        masters=services.core.masters,
        clock=service.clock,
    )
    assert [found async for found in about_workloads(installation)] == []
    entry = {"issuer": issuer.url, "subject": "repo:octo/*", "claims": {"repository_id": "74"}, "discovery": True}
    await create(studio, entry, {**entry, "subject": "worker", "claims": {}})
    wildcard, fine = [found async for found in about_workloads(installation)]
    assert (wildcard.level, fine.level) == (Level.WARN, Level.OK)
    for words in ("worker accepts every subject repo:octo/*", issuer.url, "repository_id=74"):
        assert words in wildcard.text
    del issuer.server.documents[KEYS]
    _, unread = [found async for found in about_workloads(installation)]
    assert unread.level is Level.WARN
    assert unread.text.endswith(
        f"the keys of {issuer.url} for worker cannot be read: {issuer.url}{KEYS} answered 404"
    )
