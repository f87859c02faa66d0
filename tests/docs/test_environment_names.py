"""A variable has one name in the .env files of the console, its snippets, the guides and the READMEs of clients."""

import re
from collections.abc import Iterator
from typing import Final

from gatehouse.oauth.model import Client, ClientProfile
from gatehouse.web.console.applications.environment import Variable, client_environment, key_environment
from gatehouse.web.console.applications.snippets import SNIPPETS, render_snippet
from tests.support.find_programs import ROOT

URL: Final = "https://sso.studio.example"
NAME: Final = r"([A-Z][A-Z0-9_]+)"
READS: Final = re.compile(
    rf"""environ(?:\[|\.get\()"{NAME}|[gG]etenv\("{NAME}|GetEnvironmentVariable\("{NAME}|Configuration\["{NAME}"""
    rf"""|process\.env(?:\.|\["){NAME}|__env\{{{NAME}|\$\{{?{NAME}\b|\bexport {NAME}="""
)
DESTRUCTURED: Final = re.compile(r"\{([^{}]*)\} = process\.env")
LOCAL: Final = re.compile(rf"(?m)^{NAME}=|read -r {NAME}")
# Values of one request or sign-in, names in a file that the guide is about, and variables of APIs and other products.
OTHERS: Final = {
    *("JWT", "FACTOR", "STATE", "NONCE", "CODE", "VERIFIER", "ACCESS_TOKEN", "REFRESH_TOKEN"),
    *("ANNA_PASSWORD", "TOKEN_FILE", "JOB_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_URL"),
    *("RESOURCE", "PORT", "TITLE", "SECRET_KEY", "OAUTH2_PROXY_CLIENT_SECRET", "OAUTH2_PROXY_COOKIE_SECRET"),
}


def programs() -> Iterator[tuple[str, str]]:
    """Yield every program with the place where it is shown."""
    for snippet in SNIPPETS:
        for file in render_snippet(snippet, None, application_id=50_001, base_url=URL):
            yield f"{snippet.name}/{file.name}", file.text
    for page in (*ROOT.glob("docs/guides/*.md"), *ROOT.glob("clients/**/README.md")):
        for block in re.findall(r"^ *```[a-z]+[^\n]*\n(.*?)^ *```", page.read_text(), re.MULTILINE | re.DOTALL):
            yield page.name, block


def names_read(program: str) -> set[str]:
    listed = {name.strip() for names in DESTRUCTURED.findall(program) for name in names.split(",")}
    return listed | {name for found in READS.findall(program) for name in found if name}


def names_made(program: str) -> set[str]:
    return {name for found in LOCAL.findall(program) for name in found if name}


def test_variables_have_the_same_names_in_env_files_snippets_and_guides() -> None:
    client = Client(client_id="wiki", name="Wiki", profile=ClientProfile.OIDC, redirect_uris=(URL,), created_at=1)
    assert {*client_environment(client, "", base_url=URL), *key_environment(URL, 1, "")} == set(Variable)
    used: set[str] = set()
    for place, program in programs():
        names = names_read(program) - names_made(program)
        assert names <= {*Variable, *OTHERS}, place
        used |= names
    assert used >= {*Variable, *OTHERS} - {Variable.SCOPE}, "unused names"
