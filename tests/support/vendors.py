"""Sign-in providers on loopback that behave as the documentation of each vendor says, with its oddities."""

import json
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from itertools import count
from secrets import token_urlsafe
from typing import Any, Final
from urllib.parse import parse_qsl, unquote_plus, urlencode

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

from tests.support.clock import MovableClock
from tests.support.stub_server import ReceivedRequest, StubServer, http_response, run_stub_server

CLIENT_ID: Final = "gatehouse-at-vendor"
CLIENT_SECRET: Final = "a+secret/of the vendor"
JSON: Final = {"Content_Type": "application/json"}
TENANT: Final = "9188040d-6c67-4c5b-b112-36a304b66dad"
STEAM_ID: Final = "76561197960287930"

Answer = dict[str, str]

# An RSA key takes a tenth of a second: vendors of one test have different ones, those of later tests the same again.
KEYS: Final = 4
NUMBERS: Final = count()


@lru_cache
def signing_key(number: int) -> RSAKey:  # noqa: ARG001 - one for each number
    return RSAKey.generate_key(2048, {"kid": "v1", "use": "sig", "alg": "RS256"})


@dataclass(slots=True, kw_only=True)
class Sighting:
    """What a code of the vendor stands for."""

    claims: Mapping[str, Any]
    nonce: str
    challenge: str
    redirect_uri: str


@dataclass(slots=True, kw_only=True)
class Vendor:
    """A vendor; `break_token` changes what the token endpoint answers."""

    kind: str
    clock: MovableClock
    server: StubServer = field(default_factory=StubServer)
    key: RSAKey = field(default_factory=lambda: signing_key(next(NUMBERS) % KEYS))
    codes: dict[str, Sighting] = field(default_factory=dict)
    tokens: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    apple_key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    claims_in_userinfo: bool = False
    names_issuer: bool = False
    is_down: bool = False
    tenant: str = "common"  # of Microsoft
    steam_answers: set[str] = field(default_factory=set)
    edit_claims: Callable[[dict[str, Any]], None] = lambda _: None
    signing_key: RSAKey | None = None  # another one than it publishes
    key_id: str = "v1"

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    @property
    def prefix(self) -> str:
        return {"microsoft": f"/{self.tenant}/v2.0", "twitch": "/oauth2"}.get(self.kind, "")

    @property
    def issuer(self) -> str:
        if self.kind == "microsoft" and self.tenant == "common":
            return f"{self.base}/{{tenantid}}/v2.0"
        return f"{self.base}{self.prefix}"

    @property
    def settings(self) -> dict[str, object]:
        """What an administrator enters about it, under the ID `vendor`."""
        issuer = self.base if self.kind == "microsoft" else f"{self.base}{self.prefix}"
        entered: dict[str, object] = {"kind": self.kind, "issuer": issuer, "create_accounts": True}
        if self.kind == "apple":
            entered |= {"client_id": CLIENT_ID, "team_id": "TEAM", "key_id": "KEY", "private_key": self._apple_p8()}
        elif self.kind != "steam":
            entered |= {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}
        return {f"providers.vendor.{name}": value for name, value in entered.items()}

    def _apple_p8(self) -> str:
        der = self.apple_key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
        return b64encode(der).decode()

    # -- the browser at the vendor

    def sign_in(self, address: str, **claims: object) -> Answer:
        """Sign a person in at the address that the service sent the browser to; return the answer's fields."""
        assert address.startswith(f"{self.base}/")
        query = query_of(address)
        if self.kind == "steam":
            return self._steam_answer(query, str(claims.get("steam_id", STEAM_ID)))
        assert query["client_id"] == CLIENT_ID
        code = token_urlsafe()
        self.codes[code] = Sighting(
            claims=claims,
            nonce=query.get("nonce", ""),
            challenge=query.get("code_challenge", ""),
            redirect_uri=query["redirect_uri"],
        )
        answer = {"code": code, "state": query["state"]}
        if self.names_issuer:
            answer["iss"] = self.issuer
        if self.kind == "apple":
            assert query["response_mode"] == "form_post"
        return answer

    def _steam_answer(self, query: Mapping[str, str], steam_id: str) -> Answer:
        state = query_of(query["openid.return_to"])["state"]
        fields = {
            "openid.ns": "http://specs.openid.net/auth/2.0",
            "openid.mode": "id_res",
            "openid.op_endpoint": f"{self.base}/openid/login",
            "openid.claimed_id": f"{self.base}/openid/id/{steam_id}",
            "openid.identity": f"{self.base}/openid/id/{steam_id}",
            "openid.return_to": query["openid.return_to"],
            "openid.response_nonce": f"{iso8601_of(self.clock.now())}{token_urlsafe(8)}",
            "openid.assoc_handle": "1234567890",
            "openid.signed": "signed,op_endpoint,claimed_id,identity,return_to,response_nonce,assoc_handle",
            "openid.sig": token_urlsafe(),
        }
        self.steam_answers.add(
            urlencode(sorted((name, value) for name, value in fields.items() if name != "openid.mode"))
        )
        return {"state": state, **fields}

    # -- the vendor's server

    def respond(self, request: ReceivedRequest) -> bytes:
        _, target, _ = request.line.split(" ")
        if self.is_down:
            return http_response(b"<h1>Bad gateway</h1>", "502 Bad Gateway")
        path = target.partition("?")[0]
        if path == f"{self.prefix}/.well-known/openid-configuration":
            return http_response(json.dumps(self._discovery()).encode(), **JSON)
        if path == "/keys":
            return http_response(
                json.dumps({"keys": [UNKNOWN_KEY, self.key.as_dict(private=False)]}).encode(), **JSON
            )
        if path == "/openid/login":
            return self._check_authentication(request)
        if path in ("/token", "/login/oauth/access_token", "/api/oauth2/token"):
            return self._token(request)
        return self._about_user(path, request)

    def _discovery(self) -> dict[str, object]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.base}/authorize",
            "token_endpoint": f"{self.base}/token",
            "userinfo_endpoint": f"{self.base}/userinfo",
            "jwks_uri": f"{self.base}/keys",
            **({"authorization_response_iss_parameter_supported": True} if self.names_issuer else {}),
            # Without a list the standard says client_secret_basic; Apple takes a field only.
            **({"token_endpoint_auth_methods_supported": ["client_secret_post"]} if self.kind == "apple" else {}),
        }

    def _token(self, request: ReceivedRequest) -> bytes:
        form = dict(parse_qsl(request.body.decode()))
        sighting = self.codes.pop(form["code"], None)
        if sighting is None or form["redirect_uri"] != sighting.redirect_uri or not self._knows_client(request, form):
            # GitHub answers 200 for errors.
            status = "200 OK" if self.kind == "github" else "400 Bad Request"
            return http_response(b'{"error":"bad_verification_code"}', status, **JSON)
        if sighting.challenge:
            verifier = sha256(form["code_verifier"].encode()).digest()
            assert urlsafe_b64encode(verifier).decode().rstrip("=") == sighting.challenge
        token = token_urlsafe()
        self.tokens[token] = sighting.claims
        answer: dict[str, object] = {"access_token": token, "token_type": "bearer"}
        if self.kind not in ("github", "discord"):
            answer["id_token"] = self._id_token(sighting)
        return http_response(json.dumps(answer).encode(), **JSON)

    def _knows_client(self, request: ReceivedRequest, form: Mapping[str, str]) -> bool:
        if self.kind == "apple":
            claims = jwt.decode(form["client_secret"], ECKey.import_key(self._apple_public()), algorithms=["ES256"])
            return bool(claims.header["kid"] == "KEY" and claims.claims["sub"] == CLIENT_ID == form["client_id"])
        if self.kind in ("github", "discord"):
            return form["client_secret"] == CLIENT_SECRET
        user, _, password = b64decode(request.headers["authorization"].removeprefix("Basic ")).decode().partition(":")
        return (unquote_plus(user), unquote_plus(password)) == (CLIENT_ID, CLIENT_SECRET)

    def _apple_public(self) -> dict[str, str | list[str]]:
        numbers = self.apple_key.public_key().public_numbers()
        x, y = (urlsafe_b64encode(part.to_bytes(32)).decode().rstrip("=") for part in (numbers.x, numbers.y))
        return {"kty": "EC", "crv": "P-256", "x": x, "y": y}

    def _id_token(self, sighting: Sighting) -> str:
        now = self.clock.now()
        claims = {
            "iss": self.issuer.replace("{tenantid}", TENANT),
            "aud": CLIENT_ID,
            "sub": "person-1",
            "iat": now,
            "exp": now + 300,
            "nonce": sighting.nonce,
            **({"tid": TENANT} if self.kind == "microsoft" else {}),
            **({} if self.claims_in_userinfo else sighting.claims),
        }
        self.edit_claims(claims)
        key = self.signing_key or self.key
        return jwt.encode({"alg": "RS256", "kid": self.key_id, "x5t": "ignored"}, claims, key)

    def _about_user(self, path: str, request: ReceivedRequest) -> bytes:
        claims = self.tokens.get(request.headers.get("authorization", "").removeprefix("Bearer "))
        if claims is None:
            return http_response(b"{}", "401 Unauthorized", **JSON)
        if path.endswith("/user/emails"):
            return http_response(json.dumps(claims.get("emails", [])).encode(), **JSON)
        told = (
            {"sub": "person-1", **claims}
            if path == "/userinfo"
            else {k: v for k, v in claims.items() if k != "emails"}
        )
        return http_response(json.dumps(told).encode(), **JSON)

    def _check_authentication(self, request: ReceivedRequest) -> bytes:
        """Steam confirms each of its answers once."""
        form = dict(parse_qsl(request.body.decode()))
        assert form.pop("openid.mode") == "check_authentication"
        told = urlencode(sorted(form.items()))
        is_valid = told in self.steam_answers
        self.steam_answers.discard(told)
        lines = f"ns:http://specs.openid.net/auth/2.0\nis_valid:{str(is_valid).lower()}\n"
        return http_response(lines.encode(), Content_Type="text/plain;charset=utf-8")


# Sets contain keys that are not for us: they are left out.
UNKNOWN_KEY: Final = {"kty": "EC", "crv": "P-521", "x": "AA", "y": "AA", "kid": "v1", "use": "sig"}


def query_of(address: str) -> Answer:
    return dict(parse_qsl(address.partition("?")[2]))


def iso8601_of(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@asynccontextmanager
async def run_vendor(kind: str, clock: MovableClock) -> AsyncIterator[Vendor]:
    vendor = Vendor(kind=kind, clock=clock)
    vendor.server.respond = vendor.respond
    async with run_stub_server(vendor.server):
        yield vendor
