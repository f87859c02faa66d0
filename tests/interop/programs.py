"""Third-party clients, each in a small program around it (tests/interop/clients/).

A program is a web server for one person. It gets ISSUER, CLIENT_ID, CLIENT_SECRET and PORT, prints `ready`, and
serves, on 127.0.0.1:

- /login redirects the browser to sign in; the final response is JSON with `sub` and `id_token`
- /userinfo returns what the library read from the userinfo endpoint
- /refresh responds like /login, without any interaction
- /logout, if `logs_out`, signs the person out at the service, which redirects to /logged-out

An error of the library becomes a status of 400 or more with its own message.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tests.interop.toolchains import (
    CLIENTS,
    find_go_client,
    find_java_client,
    find_more_node_clients,
    find_more_python_clients,
    find_node,
    find_node_clients,
    find_python_clients,
    find_rust_client,
    find_spring_client,
)
from tests.support.capabilities import Capability

NODE: Final = Capability(name="OAuth clients for Node", find=cache(find_node_clients))
PYTHON: Final = Capability(name="OAuth clients for Python", find=cache(find_python_clients))
MORE_NODE: Final = Capability(name="more OAuth clients for Node", find=cache(find_more_node_clients), optional=True)
MORE_PYTHON: Final = Capability(
    name="more OAuth clients for Python", find=cache(find_more_python_clients), optional=True
)
GO: Final = Capability(name="go-oidc", find=cache(find_go_client), optional=True)
RUST: Final = Capability(name="openidconnect (Rust)", find=cache(find_rust_client), optional=True)
JAVA: Final = Capability(name="Nimbus (Java)", find=cache(find_java_client), optional=True)
SPRING: Final = Capability(name="Spring Security (Java)", find=cache(find_spring_client), optional=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    name: str
    needs: Capability
    command: Callable[[Path, str], Sequence[str]]  # from the program's path and its name
    callback: str = "/callback"
    environment: Mapping[str, str] | None = None
    refused_with: str = "invalid_client"  # the library's message about a wrong secret
    uses_pkce: bool = True
    alg: str = ""  # of id_tokens, if it does not accept the default of new clients as configured
    is_slow: bool = False  # to build or to run: `make test` leaves it out
    logs_out: bool = False  # RP-initiated
    fetches_keys_at_once: bool = True  # for an unknown kid; others wait up to a minute since the last fetch


def node(home: Path, name: str) -> Sequence[str]:
    """Run it through the link beside the packages, so that Node finds them."""
    node_and_npm = find_node()
    assert node_and_npm is not None
    as_linked = ("--preserve-symlinks", "--preserve-symlinks-main", "--no-deprecation")
    return (node_and_npm[0], *as_linked, str(home / "programs" / name / "client.mjs"))


def python(interpreter: Path, name: str) -> Sequence[str]:
    return (str(interpreter), str(CLIENTS / name / "client.py"))


def itself(program: Path, _: str) -> Sequence[str]:
    return (str(program),)


def java(home: Path, _: str) -> Sequence[str]:
    return ("java", "-XX:TieredStopAtLevel=1", "-cp", f"{home}/classes:{home}/jars/*", "Client")


WITH_PYTHON: Final = {"PYTHONPATH": str(CLIENTS), "PYTHONDONTWRITEBYTECODE": "1", "OAUTHLIB_INSECURE_TRANSPORT": "1"}

CHALLENGED: Final = "WWWAuthenticateChallengeError"  # it reads the header and no further

PROGRAMS: Final = (
    Program(name="openid-client", needs=NODE, command=node, refused_with=CHALLENGED, fetches_keys_at_once=False),
    Program(name="oauth4webapi", needs=NODE, command=node, refused_with=CHALLENGED, fetches_keys_at_once=False),
    Program(
        name="auth-express",
        needs=NODE,
        command=node,
        callback="/auth/callback/gatehouse",
        refused_with=CHALLENGED,
    ),
    Program(name="passport-openidconnect", needs=NODE, command=node, uses_pkce=False),
    Program(name="authlib", needs=PYTHON, command=python, environment=WITH_PYTHON),
    Program(
        name="requests-oauthlib", needs=PYTHON, command=python, environment=WITH_PYTHON, fetches_keys_at_once=False
    ),
    Program(name="social-auth-core", needs=PYTHON, command=python, environment=WITH_PYTHON, alg="RS256"),
    Program(
        name="mozilla-django-oidc",
        needs=PYTHON,
        command=python,
        callback="/oidc/callback/",
        environment=WITH_PYTHON,
    ),
    Program(
        name="express-openid-connect",
        needs=MORE_NODE,
        command=node,
        alg="RS256",
        refused_with="OAUTH_WWW_AUTHENTICATE_CHALLENGE",
        uses_pkce=False,
        is_slow=True,
    ),
    Program(name="arctic", needs=MORE_NODE, command=node, is_slow=True),
    Program(name="idpyoidc", needs=MORE_PYTHON, command=python, environment=WITH_PYTHON, alg="RS256", is_slow=True),
    Program(name="go-oidc", needs=GO, command=itself),
    Program(name="openidconnect", needs=RUST, command=itself, alg="RS256", logs_out=True, is_slow=True),
    Program(name="nimbus", needs=JAVA, command=java, alg="RS256"),
    Program(
        name="spring-security",
        needs=SPRING,
        alg="RS256",
        command=java,
        refused_with="401 Unauthorized",  # the HTTP client of the JDK drops the body of a 401
        logs_out=True,
        is_slow=True,
    ),
)
