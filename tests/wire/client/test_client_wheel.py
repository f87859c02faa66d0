"""The wheel `gatehouse-client`, alone in an environment, runs the guide's applications for Flask and Django."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Final

import httpx2
import pytest
from tools.client_packages import build_python

from gatehouse.client import StandardTransport
from gatehouse.kernel.clock import SystemClock
from tests.interop.programs import PYTHON as DJANGO
from tests.interop.toolchains import find_flask_and_fastapi
from tests.support.capabilities import Capability, require_program
from tests.support.clock import MovableClock
from tests.support.guides import programs_for
from tests.support.processes import LOOPBACK, WatchedProcess
from tests.support.service import running_service
from tests.support.studio import PROJECT, a_studio
from tests.wire.client.conftest import KICK, ClientShop, WatchedTransport

GUIDE: Final = "connect-a-python-app"
PROGRAMS: Final = Path(__file__).parent / "programs"
NEEDED: Final = ("msgspec", "cryptography", "cffi", "pycparser")  # the last two: of cryptography
FLASK: Final = Capability(name="Flask and FastAPI", find=cache(find_flask_and_fastapi))
FRAMEWORKS: Final = {"flask_app:app": FLASK, "django_app:application": DJANGO}
ONLY_THE_CLIENT: Final = """\
import sys
from importlib.util import find_spec
from gatehouse.client import __all__, Gatehouse
import gatehouse_client
assert gatehouse_client.Gatehouse is Gatehouse and len(__all__) > 30
assert find_spec("gatehouse.web") is find_spec("gatehouse.cli") is None
print(*sorted({name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names))
"""


@pytest.fixture(scope="session")
def client_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the wheel and what it needs: without the network, from this environment."""
    home = tmp_path_factory.mktemp("client")
    build_python(home / "dist")
    (wheel,) = (home / "dist").glob("*.whl")
    python = home / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    call_pip(python, "install", "--quiet", "--no-index", "--no-deps", wheel)
    (site,) = home.glob("lib/python*/site-packages")
    for name in NEEDED:
        distribution = metadata.distribution(name)
        for top in {Path(file).parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
            (site / top).symlink_to(str(distribution.locate_file(top)))
    return python


def call_pip(python: Path, *words: str | Path) -> str:
    command = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_wheel_needs_msgspec_and_cryptography_only_and_keeps_the_import(client_python: Path) -> None:
    assert call_pip(client_python, "check").strip() == "No broken requirements found."
    listed = call_pip(client_python, "list", "--format", "freeze").split()
    assert {line.partition("==")[0] for line in listed} == {"gatehouse-client", *NEEDED}
    loaded = subprocess.run([client_python, "-c", ONLY_THE_CLIENT], capture_output=True, text=True, check=True).stdout
    assert {name for name in loaded.split() if not name.startswith("_")} == {
        *("cryptography", "gatehouse", "gatehouse_client", "msgspec")
    }


@pytest.fixture
async def forum(installed_url: str, tmp_path: Path) -> AsyncIterator[ClientShop]:
    """The studio's shop at the present time, in which Anna may kick."""
    async with running_service(installed_url, tmp_path, clock=MovableClock(SystemClock().now())) as service:
        studio = await a_studio(service)
        transport = WatchedTransport(StandardTransport(service.base_url))
        shop = ClientShop(studio=studio, transport=transport, key=await studio.access_key())
        await shop.save(
            studio.other_user,
            private_data={**KICK, "projectAccess": {PROJECT: {"private_data": KICK}}},
        )
        yield shop
        await transport.close()


def variables(forum: ClientShop) -> dict[str, str]:
    return {
        "GATEHOUSE_URL": forum.studio.service.base_url,
        "GATEHOUSE_APPLICATION": str(forum.studio.shop.application_id),
        "GATEHOUSE_KEY": forum.key,
    }


@contextmanager
def serving(python: Path, application: str, forum: ClientShop, folder: Path) -> Iterator[str]:
    """Serve the guide's application for a framework, which is found behind all packages of the environment."""
    framework = require_program(FRAMEWORKS[application])
    (site,) = python.parents[1].glob("lib/python*/site-packages")
    (packages,) = framework.parents[1].glob("lib/python*/site-packages")
    (site / "framework.pth").write_text(f"{packages}\n")
    (folder / "forum").mkdir()
    for name, program in zip(("flask_app", "django_app"), programs_for(__file__, GUIDE, "python"), strict=True):
        (folder / "forum" / f"{name}.py").write_text(program)
    words = [python, PROGRAMS / "wsgi_server.py", f"forum.{application}"]
    try:
        with WatchedProcess([str(word) for word in words], cwd=folder, environment=variables(forum)) as process:
            yield f"http://{LOOPBACK}:{process.wait_for_line(r'^ready ([0-9]+)$', process.stdout)[1]}"
            assert "AssertionError" not in process.output()  # of the validator
    finally:
        (site / "framework.pth").unlink()


@pytest.mark.parametrize("application", FRAMEWORKS)
async def test_flask_and_django_let_in_who_has_the_permission(
    client_python: Path, application: str, forum: ClientShop, tmp_path: Path
) -> None:
    anna, other = forum.studio.other_user, forum.studio.owner
    with serving(client_python, application, forum, tmp_path) as url:
        async with httpx2.AsyncClient(base_url=url) as client:
            allowed = await client.post("/kick", headers=anna.headers)
            assert (allowed.status_code, allowed.json()) == (200, {"kicked by": "Anna"})
            in_project = await client.post(f"/in/{PROJECT}/kick", headers=anna.headers)
            assert in_project.json() == {"kicked in": PROJECT}
            refusals = {
                403: [("/kick", other.headers), ("/in/another/kick", anna.headers)],
                401: [
                    ("/kick", {}),
                    ("/kick", {**anna.headers, "Factor": "another"}),
                    ("/kick", {"Authorization": "x"}),
                ],
            }
            for status, requests in refusals.items():
                for path, headers in requests:
                    answer = await client.post(path, headers=headers)
                    assert (answer.status_code, answer.json()["status"]) == (status, "ERROR"), (path, headers)
                    assert answer.headers["cache-control"] == "no-store"
                    assert answer.headers.get("www-authenticate") == ("Bearer" if status == 401 else None)


async def test_forked_worker_has_connections_of_its_own(client_python: Path, forum: ClientShop) -> None:
    words = [client_python, PROGRAMS / "forked_worker.py", forum.studio.other_user.jwt]
    ended = await asyncio.to_thread(
        subprocess.run, words, env=variables(forum), capture_output=True, text=True, timeout=60
    )
    assert ended.stdout.splitlines() == ["parent True", "child True", "parent True"], ended.stderr
