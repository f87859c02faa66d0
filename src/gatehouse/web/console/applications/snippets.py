"""Code and configuration that connect a program: one table, and template files in web/snippets.

A folder there has the name of its snippet. Secrets come from the environment; all other values are filled in.
"""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cache
from typing import Final
from urllib.parse import quote

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from gatehouse.oauth.model import Client, ClientProfile, new_token_settings
from gatehouse.oauth.token_command import api_scope
from gatehouse.web.console.applications.highlight import highlight

FOLDER: Final = "snippets"
OMITTED_SCOPES: Final = frozenset({"trust"})
EXAMPLE_CLIENT: Final = "your-client-id"
EXAMPLE_APP: Final = "http://localhost:3000"
EXAMPLE_SITE: Final = "wiki.example"
EXAMPLE_PERMISSION: Final = "user.kick"
DEFAULT_PORT: Final = "3000"
HTTPS_PORT: Final = "443"
HTTPS: Final = "https://"
ADDRESS: Final = re.compile(r"(?P<origin>[^/]+//[^/?#:]*(?::(?P<port>[0-9]+))?)(?P<path>[^?#]*).*", re.DOTALL)


class SnippetKind(StrEnum):
    """The headings of the list; the texts are `connect.kind_<value>`."""

    WEB = "web"  # has a client with a secret
    PAGE = "page"  # has a public client
    PRODUCT = "product"  # has a client with a secret
    MACHINE = "machine"  # has a client that acts for itself
    GAME = "game"  # has no client
    SITE = "site"  # has no client: the reverse proxy asks
    API = "api"  # has an access key
    ANY = "any"  # has any client of profile oidc
    NATIVE = "native"  # has a client of profile native


class SnippetCheck(StrEnum):
    """What our tests do with a file; the texts are `connect.check_<value>`."""

    RUN = "run"
    COMPILED = "compiled"
    NOT_RUN = "not_run"


CLIENT_KINDS: Final = frozenset(
    {
        SnippetKind.WEB,
        SnippetKind.PAGE,
        SnippetKind.PRODUCT,
        SnippetKind.MACHINE,
        SnippetKind.ANY,
        SnippetKind.NATIVE,
    }
)


class Snippet(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    title: str
    kind: SnippetKind
    files: Sequence[str]
    callback: str = ""  # path of the redirect URI, where the program does not let one choose
    is_tested: bool = True  # a test runs it against the service
    compiled: Sequence[str] = ()  # files that a test only compiles
    downloads: Sequence[str] = ()  # the client files that it needs (web/pages/client_files.py)
    has_hint: bool = False  # `connect.<name>_hint` says what else is needed
    verifies_player: bool = False  # `connect.verify_player` is the title, with this one in it
    lacks_pkce: bool = False  # sends none, so that the client must not require it

    def check_of(self, file: str) -> SnippetCheck:
        if not self.is_tested:
            return SnippetCheck.NOT_RUN
        return SnippetCheck.COMPILED if file in self.compiled else SnippetCheck.RUN

    def fits(self, client: Client) -> bool:
        """Whether this client can be used with it."""
        if self.kind is SnippetKind.NATIVE:
            return client.profile is ClientProfile.NATIVE
        if client.profile is ClientProfile.NATIVE:
            return False
        if client.machine or self.kind is SnippetKind.MACHINE:
            return client.machine and self.kind is SnippetKind.MACHINE
        return self.kind is SnippetKind.ANY or client.public is (self.kind is SnippetKind.PAGE)


SNIPPETS: Final = (
    Snippet(name="flask", title="Flask", kind=SnippetKind.WEB, files=("app.py", "install.sh")),
    Snippet(name="fastapi", title="FastAPI", kind=SnippetKind.WEB, files=("app.py", "install.sh")),
    Snippet(
        name="django",
        title="Django",
        kind=SnippetKind.WEB,
        files=("settings.py", "urls.py", "install.sh"),
        callback="/oidc/callback/",
        has_hint=True,
    ),
    Snippet(name="express", title="Express", kind=SnippetKind.WEB, files=("app.mjs", "install.sh")),
    Snippet(
        name="nextjs",
        title="Next.js (Auth.js)",
        kind=SnippetKind.WEB,
        files=("auth.ts", "route.ts", "page.tsx", "install.sh"),
        callback="/api/auth/callback/gatehouse",
        has_hint=True,
    ),
    Snippet(
        name="spring",
        title="Spring Boot",
        kind=SnippetKind.WEB,
        files=("application.yml", "Application.java"),
        callback="/login/oauth2/code/gatehouse",
        has_hint=True,
    ),
    Snippet(
        name="aspnet",
        title="ASP.NET Core",
        kind=SnippetKind.WEB,
        files=("Program.cs", "install.sh"),
        callback="/signin-oidc",
        is_tested=False,
    ),
    Snippet(name="go", title="Go", kind=SnippetKind.WEB, files=("main.go", "install.sh")),
    Snippet(
        name="spa",
        title="oidc-client-ts",
        kind=SnippetKind.PAGE,
        files=("main.js", "install.sh"),
        has_hint=True,
    ),
    Snippet(name="nginx", title="nginx", kind=SnippetKind.SITE, files=("site.conf",), has_hint=True),
    Snippet(name="caddy", title="Caddy", kind=SnippetKind.SITE, files=("Caddyfile",), has_hint=True),
    Snippet(
        name="oauth2-proxy",
        title="oauth2-proxy",
        kind=SnippetKind.PRODUCT,
        files=("oauth2-proxy.cfg", "run.sh"),
        callback="/oauth2/callback",
    ),
    Snippet(
        name="apache",
        title="Apache (mod_auth_openidc)",
        kind=SnippetKind.PRODUCT,
        files=("site.conf",),
    ),
    Snippet(
        name="grafana",
        title="Grafana",
        kind=SnippetKind.PRODUCT,
        files=("grafana.ini",),
        callback="/login/generic_oauth",
        is_tested=False,
    ),
    Snippet(
        name="gitea",
        title="Gitea, Forgejo",
        kind=SnippetKind.PRODUCT,
        files=("app.ini", "add.sh"),
        callback="/user/oauth2/gatehouse/callback",
        has_hint=True,
        lacks_pkce=True,
    ),
    Snippet(
        name="nextcloud",
        title="Nextcloud",
        kind=SnippetKind.PRODUCT,
        files=("add.sh",),
        callback="/apps/user_oidc/code",
        is_tested=False,
    ),
    Snippet(name="machine", title="curl", kind=SnippetKind.MACHINE, files=("token.sh",), has_hint=True),
    Snippet(
        name="game-python",
        title="Python",
        kind=SnippetKind.GAME,
        files=("game.py", "guest.py", "steam.py"),
        compiled=("guest.py", "steam.py"),
        downloads=("gatehouse_login.py",),
        has_hint=True,
    ),
    Snippet(
        name="game-cpp",
        title="C++",
        kind=SnippetKind.GAME,
        files=("game.cpp", "guest.hpp"),
        compiled=("guest.hpp",),
        downloads=("gatehouse_login.hpp", "gatehouse_guest.hpp"),
        has_hint=True,
    ),
    Snippet(
        name="game-csharp",
        title="C#",
        kind=SnippetKind.GAME,
        files=("Game.cs", "Guest.cs"),
        compiled=("Guest.cs",),
        downloads=("GatehouseLogin.cs", "GatehouseGuest.cs", "Ed25519.cs"),
        has_hint=True,
    ),
    Snippet(
        name="game-unity",
        title="Unity",
        kind=SnippetKind.GAME,
        files=("SignIn.cs", "Guest.cs"),
        compiled=("Guest.cs",),
        downloads=("gatehouse-unity.zip",),
        has_hint=True,
    ),
    Snippet(
        name="game-godot4",
        title="Godot 4",
        kind=SnippetKind.GAME,
        files=("game.gd", "guest.gd"),
        compiled=("guest.gd",),
        downloads=("gatehouse-godot.zip",),
        has_hint=True,
    ),
    Snippet(
        name="game-godot3",
        title="Godot 3",
        kind=SnippetKind.GAME,
        files=("game.gd",),
        downloads=("gatehouse_login.gd",),
        has_hint=True,
    ),
    Snippet(
        name="game-typescript",
        title="TypeScript",
        kind=SnippetKind.GAME,
        files=("game.ts", "guest.ts", "steam.ts"),
        compiled=("guest.ts", "steam.ts"),
        downloads=("gatehouse_login.ts",),
        has_hint=True,
    ),
    Snippet(name="permissions", title="Python (ASGI)", kind=SnippetKind.API, files=("app.py", "run.sh")),
    Snippet(name="verify-node", title="Node", kind=SnippetKind.API, files=("verify.mjs",), verifies_player=True),
    Snippet(name="verify-go", title="Go", kind=SnippetKind.API, files=("main.go",), verifies_player=True),
    Snippet(name="verify-csharp", title="C#", kind=SnippetKind.API, files=("Verify.cs",), verifies_player=True),
    Snippet(name="check", title="curl", kind=SnippetKind.API, files=("check.sh",)),
    Snippet(name="shell", title="Shell", kind=SnippetKind.ANY, files=("sign_in.sh",)),
    Snippet(name="native", title="Shell (native)", kind=SnippetKind.NATIVE, files=("sign_in.sh",)),
)
BY_NAME: Final[Mapping[str, Snippet]] = {snippet.name: snippet for snippet in SNIPPETS}


class SnippetFile(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    text: str
    check: SnippetCheck

    @property
    def highlighted(self) -> Markup:
        return highlight(self.text, self.name.rpartition(".")[2])


@cache
def snippet_environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("gatehouse.web", FOLDER),
        autoescape=False,  # noqa: S701 - programs, not pages; a page escapes the result
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.filters.update(json=json_text, sh=shlex.quote, url=lambda text: quote(text, safe=""))
    return environment


def render_snippet(
    snippet: Snippet,
    client: Client | None,
    *,
    application_id: int,
    base_url: str,
    site: str = EXAMPLE_SITE,
    api: Mapping[str, object] | None = None,
) -> Sequence[SnippetFile]:
    """Return the files with the values of this client, or of an example if there is none yet.

    `site`: host and port of a protected site. `api`: the API that the application declares.
    """
    host, _, port = site.partition(":")
    values = template_values(snippet, client, base_url) | {
        "application_id": application_id,
        "resource": api["resource"] if api else "",
        "api_scope": api_scope(api) if api else "",
        "site": site,
        "site_host": host,
        "site_port": port or HTTPS_PORT,
    }
    templates = snippet_environment()
    return [
        SnippetFile(
            name=file,
            text=templates.get_template(f"{snippet.name}/{file}.j2").render(values),
            check=snippet.check_of(file),
        )
        for file in snippet.files
    ]


def template_values(snippet: Snippet, client: Client | None, issuer: str) -> dict[str, object]:
    redirect = snippet_redirect(snippet, client)
    address = ADDRESS.fullmatch(redirect)
    return {
        "issuer": issuer,
        "is_plain": issuer.startswith("http:"),
        "discovery": f"{issuer}/.well-known/openid-configuration",
        "client_id": client.client_id if client else EXAMPLE_CLIENT,
        "public": client.public if client else snippet.kind is SnippetKind.PAGE,
        "workload": client is not None and bool(client.workload_identities),
        "scope": client_scope(client) if client else "openid email profile",
        "id_token_alg": (
            client.token_settings if client else new_token_settings(ClientProfile.OIDC)
        ).id_token_alg.value,
        "redirect": redirect,
        "callback": (address["path"] if address else "") or "/",
        "app_url": address["origin"] if address else EXAMPLE_APP,
        "port": (address["port"] if address else None) or DEFAULT_PORT,
        "permission": EXAMPLE_PERMISSION,
    }


def example_site(origins: Iterable[str]) -> str:
    """Return host and port of the first site that a proxy can be configured for, else of an example."""
    hosts = (origin.removeprefix(HTTPS) for origin in origins if origin.startswith(HTTPS))
    return next((host for host in hosts if not host.startswith("[")), EXAMPLE_SITE)


def snippet_redirect(snippet: Snippet, client: Client | None) -> str:
    """Return the redirect URI that the program has, on the host of the client's first one."""
    first = example_redirect(client) if client else f"{EXAMPLE_APP}/callback"
    address = ADDRESS.fullmatch(first)
    return f"{address['origin']}{snippet.callback}" if snippet.callback and address else first


def example_redirect(client: Client) -> str:
    if client.redirect_uris:
        return client.redirect_uris[0]
    return f"https://{client.redirect_hosts[0]}/callback" if client.redirect_hosts else f"{EXAMPLE_APP}/callback"


def client_scope(client: Client) -> str:
    return " ".join(scope for scope in client.scopes if scope not in OMITTED_SCOPES)


def json_text(value: object) -> str:
    """A string as JSON, which is one in Python, JavaScript, Java, C#, Go and TOML as well."""
    return msgspec.json.encode(value).decode()
