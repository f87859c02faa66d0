"""Ory Hydra on PostgreSQL, a contender of bench/single_sign_on.py: RS256, and a cheap hash of the client secret."""

import asyncio
import base64
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_urlsafe
from typing import Any, Final

import httpx2
import msgspec
from bench import load_hydra
from bench.load import LoadResult
from bench.load_hydra import HydraLoad
from bench.machine import on_core
from bench.server import run_load, wait_until_healthy
from bench.single_sign_on import HYDRA, REDIRECT, SCOPE, SECRET, SLOW_SECONDS, Contender
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.interop.person import LOGIN, NICK
from tests.interop.toolchains import find_hydra
from tests.support.processes import LOOPBACK, WatchedProcess, free_port, inherited_environment
from tools.client_deps import HYDRA_PROGRAM
from tools.install import ensure_installed

SUBJECT: Final = "1001"
PAGES: Final = "http://127.0.0.1:9"  # nothing listens there: bench/load_hydra.py accepts in place of the pages
CONNECTIONS: Final = 10  # to the database, as the others have
KEY_SETS: Final = ("hydra.openid.id-token", "hydra.jwt.access-token")
ACCEPT: Final[dict[str, dict[str, Any]]] = {
    "login": {"subject": SUBJECT, "remember": True, "remember_for": 0},
    "consent": {
        "grant_scope": SCOPE.split(),
        "session": {"id_token": {"email": LOGIN, "email_verified": True, "nickname": NICK}},
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HydraContender(Contender):
    admin_port: int

    def sign_in(self) -> Contender:
        return replace(self, cookie=asyncio.run(load_hydra.sign_in(self.hydra_load("flow"))))

    def access_token(self) -> str:
        return asyncio.run(load_hydra.access_token(self.hydra_load("flow")))

    def hydra_load(self, kind: str) -> HydraLoad:
        return HydraLoad(**msgspec.structs.asdict(self.load(kind)), admin_port=self.admin_port, accept=ACCEPT)

    def _measure_sequence(self, kind: str) -> LoadResult:
        return run_load("bench.load_hydra", self.hydra_load(kind))


def has_hydra() -> bool:
    ensure_installed(HYDRA_PROGRAM)
    return find_hydra() is not None


@contextmanager
def hydra(scratch: Path, database_url: str) -> Iterator[Contender]:
    program = find_hydra()
    assert program is not None  # noqa: S101 - the caller has checked
    port, admin_port = free_port(), free_port()
    issuer, admin = f"http://localhost:{port}", f"http://{LOOPBACK}:{admin_port}"
    config = scratch / "hydra.json"
    config.write_text(json.dumps(settings(database_url, issuer, port, admin_port)))
    environment = {"SQA_OPT_OUT": "true"}  # no telemetry
    subprocess.run(
        [program, "migrate", "sql", "--read-from-env", "--yes", "--config", config],
        check=True,
        capture_output=True,
        env=inherited_environment(environment | {"DSN": dsn(database_url)}),
    )
    with on_core(0):
        command = [str(program), "serve", "all", "--dev", "--sqa-opt-out", "--config", str(config)]
        process = WatchedProcess(command, environment=environment)
    with process:
        wait_until_healthy(process, f"{admin}/health/ready")
        store_keys(admin)
        created = httpx2.post(f"{admin}/admin/clients", json=client()).raise_for_status().json()
        endpoints = httpx2.get(f"{issuer}/.well-known/openid-configuration").raise_for_status().json()
        yield HydraContender(
            name=HYDRA,
            storage="PostgreSQL",
            alg="RS256",
            issuer=issuer,
            port=port,
            admin_port=admin_port,
            client_id=created["client_id"],
            secret=SECRET,
            seconds=SLOW_SECONDS,
            endpoints={
                **{key: value for key, value in endpoints.items() if isinstance(value, str)},
                "introspection_endpoint": f"{admin}/admin/oauth2/introspect",
            },
            pids=(process.pid,),
        ).sign_in()


def settings(database_url: str, issuer: str, port: int, admin_port: int) -> dict[str, Any]:
    return {
        "dsn": dsn(database_url),
        "log": {"level": "warn"},
        "serve": {"public": {"host": LOOPBACK, "port": port}, "admin": {"host": LOOPBACK, "port": admin_port}},
        "urls": {"self": {"issuer": issuer}, "login": f"{PAGES}/login", "consent": f"{PAGES}/consent"},
        "secrets": {"system": [token_urlsafe(32)]},
        "strategies": {"access_token": "opaque"},
        "oauth2": {"hashers": {"algorithm": "pbkdf2", "pbkdf2": {"iterations": 1}}},
    }


def dsn(database_url: str) -> str:
    options = f"sslmode=disable&max_conns={CONNECTIONS}&max_idle_conns={CONNECTIONS}"
    return f"postgres://{database_url.partition('://')[2]}?{options}"


def client() -> dict[str, Any]:
    return {
        "client_secret": SECRET,
        "redirect_uris": [REDIRECT],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "scope": SCOPE,
        "skip_consent": True,
        "token_endpoint_auth_method": "client_secret_basic",
    }


def store_keys(admin: str) -> None:
    """Replace the keys of 4096 bits that Hydra creates by default: all contenders sign with 2048."""
    for name in KEY_SETS:
        key = {"kid": name, "kty": "RSA", "alg": "RS256", "use": "sig", **new_key()}
        httpx2.put(f"{admin}/admin/keys/{name}", json={"keys": [key]}, timeout=60).raise_for_status()


def new_key() -> dict[str, str]:
    private = rsa.generate_private_key(public_exponent=65_537, key_size=2_048).private_numbers()
    public = private.public_numbers
    numbers = {"n": public.n, "e": public.e, "d": private.d, "p": private.p, "q": private.q}
    numbers |= {"dp": private.dmp1, "dq": private.dmq1, "qi": private.iqmp}
    return {name: base64url(number) for name, number in numbers.items()}


def base64url(number: int) -> str:
    return base64.urlsafe_b64encode(number.to_bytes((number.bit_length() + 7) // 8)).rstrip(b"=").decode()
