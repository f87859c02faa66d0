"""Install the OAuth clients of tests/interop/ and the peers of bench/: exact versions, checked against lock files.

Everything is stored under .test-deps/ and never imported by the service. Programs that need a compiler or a system
package are optional.
"""

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.interop.toolchains import (
    CLIENTS,
    GITEA_HOME,
    GITEA_SOURCE,
    GO_CLIENT,
    GO_MODULES,
    GO_SOURCE,
    HYDRA_HOME,
    HYDRA_SOURCE,
    JAVA_CLIENT,
    JAVA_SOURCE,
    KEYCLOAK_HOME,
    KEYCLOAK_LOCK,
    MCP_NODE,
    MCP_NODE_LOCK,
    MCP_PROGRAMS,
    MCP_PYTHON,
    MCP_PYTHON_LOCK,
    MORE_NODE,
    MORE_NODE_LOCK,
    MORE_PYTHON,
    MORE_PYTHON_LOCK,
    NODE_CLIENTS,
    NODE_LOCK,
    OAUTH2_PROXY,
    OAUTH2_PROXY_SOURCE,
    OPENFGA_HOME,
    OPENFGA_SOURCE,
    PAGES_NODE,
    PAGES_NODE_LOCK,
    PAGES_PYTHON,
    PAGES_PYTHON_LOCK,
    PEER,
    PEER_HOME,
    PEER_LOCK,
    PYTHON_CLIENTS,
    PYTHON_LOCK,
    PYTHON_PEER_HOME,
    PYTHON_PEER_LOCK,
    RUST_CLIENT,
    RUST_SOURCE,
    SINGLE_PAGE,
    SINGLE_PAGE_LOCK,
    SPRING_CLIENT,
    SPRING_SOURCE,
    TYPESCRIPT_HOME,
    TYPESCRIPT_LOCK,
    find_cpp,
    find_flask_and_fastapi,
    find_git_credential_oauth,
    find_gitea,
    find_go_client,
    find_godot,
    find_godot_4,
    find_hydra,
    find_java_client,
    find_keycloak,
    find_mcp_for_node,
    find_mcp_for_python,
    find_mod_auth_openidc,
    find_mono,
    find_more_node_clients,
    find_more_python_clients,
    find_nextjs,
    find_node,
    find_node_clients,
    find_oauth2_proxy,
    find_openfga,
    find_peer,
    find_python_clients,
    find_python_peer,
    find_rust_client,
    find_single_page_client,
    find_spring_client,
    find_typescript,
    go_lock,
    go_sources,
    java_sources,
    keycloak_version,
    rust_sources,
    stamp,
)
from tests.support.find_programs import DOWNLOADS

from tools.godot_deps import unpack_godot_4
from tools.install import CouldNotGet, InstallMethod, Program, download_node, run

GO_PLACES: Final = "/usr/local/go/bin:/usr/lib/go/bin"  # usual places that may not be on PATH
BUILD_TIMEOUT: Final = 3_600  # seconds; the large programs take minutes on an idle machine
DEPENDENCY_PLUGIN: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"


def install_node_clients() -> None:
    install_node_packages(NODE_CLIENTS, NODE_LOCK)
    # Node finds packages in the directories above a program, so our programs are run through this link.
    (NODE_CLIENTS / "programs").symlink_to(CLIENTS)
    stamp(NODE_CLIENTS, NODE_LOCK)


def install_more_node_clients() -> None:
    install_node_packages(MORE_NODE, MORE_NODE_LOCK)
    (MORE_NODE / "programs").symlink_to(CLIENTS)
    stamp(MORE_NODE, MORE_NODE_LOCK)


def install_more_python_clients() -> None:
    install_python_packages(MORE_PYTHON, MORE_PYTHON_LOCK)


def install_mcp_for_node() -> None:
    install_node_packages(MCP_NODE, MCP_NODE_LOCK)
    (MCP_NODE / "programs").symlink_to(MCP_PROGRAMS)
    stamp(MCP_NODE, MCP_NODE_LOCK)


def install_mcp_for_python() -> None:
    install_python_packages(MCP_PYTHON, MCP_PYTHON_LOCK)


def install_nextjs() -> None:
    install_node_packages(PAGES_NODE, PAGES_NODE_LOCK)
    stamp(PAGES_NODE, PAGES_NODE_LOCK)


def install_flask_and_fastapi() -> None:
    install_python_packages(PAGES_PYTHON, PAGES_PYTHON_LOCK)


def install_peer() -> None:
    download_node(why="the peer needs")
    install_node_packages(PEER_HOME, PEER_LOCK)
    (PEER_HOME / "programs").symlink_to(PEER)
    stamp(PEER_HOME, PEER_LOCK)


def install_typescript() -> None:
    install_node_packages(TYPESCRIPT_HOME, TYPESCRIPT_LOCK)
    stamp(TYPESCRIPT_HOME, TYPESCRIPT_LOCK)


def install_single_page_client() -> None:
    install_node_packages(SINGLE_PAGE, SINGLE_PAGE_LOCK)
    stamp(SINGLE_PAGE, SINGLE_PAGE_LOCK)


def install_node_packages(home: Path, lock: Path) -> None:
    _, npm = find_node() or download_node(why="the clients need")
    renew(home)
    for name in ("package.json", lock.name):
        shutil.copy(lock.with_name(name), home)
    with tempfile.TemporaryDirectory(dir=DOWNLOADS) as cache:  # not shared with other installations
        run(
            [*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1", f"--cache={cache}"], home
        )


def install_python_clients() -> None:
    install_python_packages(PYTHON_CLIENTS, PYTHON_LOCK)


def install_python_peer() -> None:
    install_python_packages(PYTHON_PEER_HOME, PYTHON_PEER_LOCK)


def install_python_packages(home: Path, lock: Path) -> None:
    renew(home)
    run([sys.executable, "-m", "venv", "--without-pip", str(home)])
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python")]
    quietly = ["-qq", "--retries=1", "--disable-pip-version-check"]
    run([*pip, "install", *quietly, "--require-hashes", "-r", str(lock)])
    stamp(home, lock)


def build_go_client() -> None:
    """Build it, and keep the sources of its modules for the snippet of the console."""
    build_go_program(GO_CLIENT / "go-oidc", GO_SOURCE, ".", vendor=GO_MODULES)
    stamp(GO_CLIENT, *go_sources())


def build_oauth2_proxy() -> None:
    build_go_program(OAUTH2_PROXY / "oauth2-proxy", OAUTH2_PROXY_SOURCE, "github.com/oauth2-proxy/oauth2-proxy/v7")
    stamp(OAUTH2_PROXY, *go_lock(OAUTH2_PROXY_SOURCE))


def build_gitea() -> None:
    """Build it with SQLite, whose driver is C. Its templates and translations are files beside the program."""
    if shutil.which("gcc") is None:
        raise CouldNotGet("no C compiler is installed")
    build_go_program(
        GITEA_HOME / "gitea",
        GITEA_SOURCE,
        "code.gitea.io/gitea",
        tags="sqlite,sqlite_unlock_notify",
        directories=("options", "public", "templates"),
    )
    stamp(GITEA_HOME, *go_lock(GITEA_SOURCE))


def build_hydra() -> None:
    build_go_program(HYDRA_HOME / "hydra", HYDRA_SOURCE, "github.com/ory/hydra/v2")
    stamp(HYDRA_HOME, *go_lock(HYDRA_SOURCE))


def build_openfga() -> None:
    build_go_program(OPENFGA_HOME / "openfga", OPENFGA_SOURCE, "github.com/openfga/openfga/cmd/openfga")
    stamp(OPENFGA_HOME, *go_lock(OPENFGA_SOURCE))


def build_go_program(
    program: Path,
    source: Path,
    package: str,
    *,
    tags: str = "",
    directories: Sequence[str] = (),
    vendor: Path | None = None,
) -> None:
    """Build a package in the versions that the go.mod and go.sum of the source name.

    With `tags` it may contain C. `directories` of its module are copied beside the program. `vendor` gets the sources
    of its modules.
    """
    go = shutil.which("go") or shutil.which("go", path=GO_PLACES)
    if go is None:
        raise CouldNotGet("Go is not installed")
    renew(program.parent)
    with tempfile.TemporaryDirectory(dir=DOWNLOADS) as workshop:
        places = {name: f"{workshop}/{name}" for name in ("GOMODCACHE", "GOCACHE", "GOPATH")}
        options = {
            "GOFLAGS": "-modcacherw -mod=readonly",
            "GOTOOLCHAIN": "local",
            "CGO_ENABLED": "1" if tags else "0",
        }
        command = [go, "build", "-tags", tags, "-o", str(program), package]
        run(command, source, {**places, **options}, timeout=BUILD_TIMEOUT)
        if vendor is not None:
            run([go, "mod", "vendor", "-o", str(vendor)], source, {**places, **options}, timeout=BUILD_TIMEOUT)
        for module in Path(workshop, "GOMODCACHE").glob(f"{package}@*"):
            for directory in directories:
                shutil.copytree(module / directory, program.parent / directory)


def build_rust_client() -> None:
    if shutil.which("cargo") is None:
        raise CouldNotGet("Rust is not installed")
    renew(RUST_CLIENT)
    with tempfile.TemporaryDirectory(dir=DOWNLOADS) as workshop:
        target = {"CARGO_TARGET_DIR": f"{workshop}/target", "CARGO_INCREMENTAL": "0", "CARGO_PROFILE_DEV_DEBUG": "0"}
        run(["cargo", "build", "--locked", "--quiet"], RUST_SOURCE, target, timeout=BUILD_TIMEOUT)
        shutil.copy(
            Path(workshop, "target", "debug", "gatehouse-interop-openidconnect"), RUST_CLIENT / "openidconnect"
        )
    stamp(RUST_CLIENT, *rust_sources())


def build_java_client() -> None:
    build_java_program(JAVA_CLIENT, JAVA_SOURCE)


def build_spring_client() -> None:
    build_java_program(SPRING_CLIENT, SPRING_SOURCE)


def build_java_program(home: Path, source: Path) -> None:
    """Compile Client.java with the jars that pom.xml names, checked against jars.sha256."""
    if shutil.which("mvn") is None or shutil.which("javac") is None:
        raise CouldNotGet("no JDK with Maven is installed")
    renew(home)
    jars = home / "jars"
    with tempfile.TemporaryDirectory(dir=DOWNLOADS) as repository:
        quietly = ["-q", "-B", f"-Dmaven.repo.local={repository}", "-f", str(source / "pom.xml")]
        run(["mvn", *quietly, f"{DEPENDENCY_PLUGIN}:copy-dependencies", f"-DoutputDirectory={jars}"])
    check_digests(jars, source / "jars.sha256")
    run(["javac", "-nowarn", "-cp", f"{jars}/*", "-d", str(home / "classes"), str(source / "Client.java")])
    stamp(home, *java_sources(source))


def install_keycloak() -> None:
    if shutil.which("mvn") is None or shutil.which("java") is None:
        raise CouldNotGet("no Java with Maven is installed")
    renew(KEYCLOAK_HOME)
    artifact = f"org.keycloak:keycloak-quarkus-dist:{keycloak_version()}:tar.gz"
    with tempfile.TemporaryDirectory(dir=DOWNLOADS) as workshop:
        archives = Path(workshop, "archives")
        quietly = ["-q", "-B", f"-Dmaven.repo.local={workshop}/repository"]
        run(
            ["mvn", *quietly, f"{DEPENDENCY_PLUGIN}:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={archives}"],
            Path(workshop),
        )
        check_digests(archives, KEYCLOAK_LOCK)
        archive = next(archives.iterdir())
        run(["tar", "-xzf", str(archive), "-C", str(KEYCLOAK_HOME), "--strip-components=1"])
    options = ["--db=postgres", "--health-enabled=false", "--metrics-enabled=false"]
    run([str(KEYCLOAK_HOME / "bin" / "kc.sh"), "build", *options])
    stamp(KEYCLOAK_HOME, KEYCLOAK_LOCK)


def check_digests(directory: Path, lock: Path) -> None:
    """Compare every file with the lock: Maven locks versions but no bytes."""
    wanted = {name: digest for digest, name in map(str.split, lock.read_text().splitlines())}
    found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in directory.iterdir()}
    if found != wanted:
        raise CouldNotGet(f"the checksums do not match {lock.name}")


def renew(home: Path) -> None:
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)


CLIENT_PROGRAMS: Final = (
    Program(
        name="OAuth clients for Node",
        find=find_node_clients,
        download=InstallMethod(
            description="Node registry, tests/interop/clients/package-lock.json", install=install_node_clients
        ),
    ),
    Program(
        name="OAuth clients for Python",
        find=find_python_clients,
        download=InstallMethod(
            description="Python registry, tests/interop/clients/requirements.txt", install=install_python_clients
        ),
    ),
    Program(
        name="MCP for Python",
        find=find_mcp_for_python,
        download=InstallMethod(
            description="Python registry, tests/interop/clients/mcp/requirements.txt", install=install_mcp_for_python
        ),
    ),
    Program(
        name="MCP for Node",
        find=find_mcp_for_node,
        download=InstallMethod(
            description="Node registry, tests/interop/clients/mcp/package-lock.json", install=install_mcp_for_node
        ),
    ),
    Program(
        name="Flask and FastAPI",
        find=find_flask_and_fastapi,
        download=InstallMethod(
            description="Python registry, tests/interop/clients/pages/requirements.txt",
            install=install_flask_and_fastapi,
        ),
    ),
    Program(
        name="optional go-oidc",
        find=find_go_client,
        download=InstallMethod(description="built from tests/interop/clients/go-oidc", install=build_go_client),
    ),
    Program(
        name="optional oidc-client-ts",
        find=find_single_page_client,
        download=InstallMethod(
            description="Node registry, tests/interop/clients/oidc-client-ts/package-lock.json",
            install=install_single_page_client,
        ),
    ),
    Program(
        name="optional Nimbus (Java)",
        find=find_java_client,
        download=InstallMethod(description="built from tests/interop/clients/nimbus", install=build_java_client),
    ),
    Program(
        name="optional mod_auth_openidc",
        find=find_mod_auth_openidc,
        system_package="apache2-bin libapache2-mod-auth-openidc",
    ),
    Program(
        name="optional git-credential-oauth", find=find_git_credential_oauth, system_package="git-credential-oauth"
    ),
    Program(
        name="TypeScript",
        find=find_typescript,
        download=InstallMethod(
            description="Node registry, tests/game_clients/package-lock.json", install=install_typescript
        ),
    ),
    Program(
        name="optional C++ with libcurl and libsodium",
        find=find_cpp,
        system_package="g++ libcurl4-openssl-dev libsodium-dev",
    ),
    Program(
        name="optional Mono (C#)",
        find=find_mono,
        system_package="mono-mcs mono-runtime libmono-system-net-http4.0-cil",
    ),
    Program(name="optional Godot 3", find=find_godot, system_package="godot3-server"),
    Program(
        name="optional Godot 4",
        find=find_godot_4,
        download=InstallMethod(description="Debian testing, unpacked", install=unpack_godot_4),
    ),
)
# Built for minutes, so by `make interop` only.
PEER_PROGRAM: Final = Program(
    name="optional oidc-provider",
    find=find_peer,
    download=InstallMethod(description="Node registry, bench/oidc_provider/package-lock.json", install=install_peer),
)
SLOW_CLIENT_PROGRAMS: Final = (
    PEER_PROGRAM,
    Program(
        name="optional more OAuth clients for Node",
        find=find_more_node_clients,
        download=InstallMethod(
            description="Node registry, tests/interop/clients/more/package-lock.json",
            install=install_more_node_clients,
        ),
    ),
    Program(
        name="optional more OAuth clients for Python",
        find=find_more_python_clients,
        download=InstallMethod(
            description="Python registry, tests/interop/clients/more/requirements.txt",
            install=install_more_python_clients,
        ),
    ),
    Program(
        name="optional Next.js",
        find=find_nextjs,
        download=InstallMethod(
            description="Node registry, tests/interop/clients/pages/package-lock.json", install=install_nextjs
        ),
    ),
    Program(
        name="optional oauth2-proxy",
        find=find_oauth2_proxy,
        download=InstallMethod(
            description="Go module proxy, tests/interop/clients/oauth2-proxy/go.sum", install=build_oauth2_proxy
        ),
    ),
    Program(
        name="optional Gitea",
        find=find_gitea,
        download=InstallMethod(
            description="Go module proxy, tests/interop/clients/gitea/go.sum", install=build_gitea
        ),
    ),
    Program(
        name="optional openidconnect (Rust)",
        find=find_rust_client,
        download=InstallMethod(
            description="built from tests/interop/clients/openidconnect", install=build_rust_client
        ),
    ),
    Program(
        name="optional Spring Security (Java)",
        find=find_spring_client,
        download=InstallMethod(
            description="built from tests/interop/clients/spring-security", install=build_spring_client
        ),
    ),
)
PYTHON_PEER_PROGRAM: Final = Program(
    name="django-oauth-toolkit",
    find=find_python_peer,
    download=InstallMethod(
        description="Python registry, bench/django_oauth_toolkit/requirements.txt", install=install_python_peer
    ),
)
KEYCLOAK_PROGRAM: Final = Program(
    name="optional Keycloak",
    find=find_keycloak,
    download=InstallMethod(description="Maven Central, bench/keycloak/dist.sha256", install=install_keycloak),
)
HYDRA_PROGRAM: Final = Program(
    name="optional Ory Hydra",
    find=find_hydra,
    download=InstallMethod(description="Go module proxy, bench/hydra/go.sum", install=build_hydra),
)
OPENFGA_PROGRAM: Final = Program(
    name="optional OpenFGA",
    find=find_openfga,
    download=InstallMethod(description="Go module proxy, bench/openfga/go.sum", install=build_openfga),
)
