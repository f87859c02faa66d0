"""The environment of a connected program: the names of its variables, and its .env file."""

import secrets
import shlex
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from gatehouse.oauth.model import Client
from gatehouse.web.console.applications.snippets import client_scope, example_redirect

SESSION_SECRET_BYTES: Final = 32


class Variable(StrEnum):
    """Every variable that a .env file of the console sets, and that snippets and guides read."""

    ISSUER = "OIDC_ISSUER"
    CLIENT_ID = "OIDC_CLIENT_ID"
    CLIENT_SECRET = "OIDC_CLIENT_SECRET"  # noqa: S105 - a name, not a secret
    REDIRECT_URI = "OIDC_REDIRECT_URI"
    SCOPE = "OIDC_SCOPE"
    SESSION_SECRET = "SESSION_SECRET"  # noqa: S105 - a name, not a secret
    URL = "GATEHOUSE_URL"
    APPLICATION = "GATEHOUSE_APPLICATION"
    KEY = "GATEHOUSE_KEY"


def client_environment(client: Client, secret: str, *, base_url: str) -> Mapping[Variable, str]:
    """Return what snippets of the client read from the environment, and what most libraries want besides."""
    credentials = {
        Variable.ISSUER: base_url,
        Variable.CLIENT_ID: client.client_id,
        Variable.CLIENT_SECRET: secret,
    }
    if client.machine:
        return credentials
    return {
        **credentials,
        Variable.REDIRECT_URI: example_redirect(client),
        Variable.SCOPE: client_scope(client),
        Variable.SESSION_SECRET: secrets.token_hex(SESSION_SECRET_BYTES),
    }


def key_environment(base_url: str, application_id: int, value: str) -> Mapping[Variable, str]:
    """Return what programs read that ask with an access key."""
    return {Variable.URL: base_url, Variable.APPLICATION: str(application_id), Variable.KEY: value}


def environment_file(values: Mapping[Variable, str]) -> str:
    """Return the lines of a .env file, which a shell reads as well."""
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items())
