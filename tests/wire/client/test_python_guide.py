"""Follow docs/guides/connect-a-python-app.md: its file, its commands, and its application under uvicorn."""

import asyncio
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Final

import pytest

from gatehouse.kernel.clock import SystemClock
from tests.support.clock import MovableClock
from tests.support.command_line import InstallationPaths
from tests.support.guides import programs_for, session_steps
from tests.support.processes import WatchedProcess, free_port, inherited_environment
from tests.support.service import running_service

GUIDE: Final = "connect-a-python-app"
GENERATED: Final = re.compile(r": [0-9a-f]{12,}…?")
GATEHOUSE: Final = '#!/bin/sh\nexec {python} -m gatehouse "$@" --dev --data {data}\n'


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl, which the guide shows")
async def test_application_of_the_guide_lets_the_person_of_the_guide_in(installed_url: str, tmp_path: Path) -> None:
    (forum,) = programs_for(__file__, GUIDE, "yaml")
    [(_, printed)] = session_steps(*programs_for(__file__, GUIDE, "console"))
    application, *_ = programs_for(__file__, GUIDE, "python")
    (script,) = programs_for(__file__, GUIDE, "sh")
    (tmp_path / "forum.yaml").write_text(forum)
    (tmp_path / "forum").mkdir()
    (tmp_path / "gatehouse").write_text(GATEHOUSE.format(python=sys.executable, data=tmp_path))
    (tmp_path / "gatehouse").chmod(0o700)
    (tmp_path / "forum" / "permissions.py").write_text(application)
    installation = InstallationPaths(data=tmp_path, url=installed_url)
    clock = MovableClock(SystemClock().now())  # commands and the application use the real clock
    async with running_service(installed_url, tmp_path, clock=clock) as service:
        applied = await asyncio.to_thread(installation.command_line(), "apply", tmp_path / "forum.yaml")
        key = re.findall(GENERATED, applied)[0].removeprefix(": ")
        assert GENERATED.sub(": KEY", applied) == GENERATED.sub(": KEY", printed)
        port = free_port()
        environment = {
            "GATEHOUSE_URL": service.base_url,
            "GATEHOUSE_APPLICATION": "50030",
            "GATEHOUSE_KEY": key,
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        words = [sys.executable, "-m", "uvicorn", "forum.permissions:app", "--port", str(port)]
        with WatchedProcess(words, cwd=tmp_path, environment=environment) as process:
            await asyncio.to_thread(process.wait_until_started, "running on", process.stderr)
            answer = json.loads(await run_script(script.replace("8100", str(port)), installation))
    assert answer == {"kicked by": "Anna"}


async def run_script(script: str, installation: InstallationPaths) -> str:
    """Run a script in which `gatehouse` is the command of the installation."""
    environment = inherited_environment(installation.settings)
    environment["PATH"] = f"{installation.data}:/usr/local/bin:/usr/bin:/bin"
    process = await asyncio.create_subprocess_exec(
        "bash", "-euc", script.replace("curl ", "curl -s "), env=environment, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    return output.decode()


def test_programs_of_the_guide_for_fastapi_and_projects_compile() -> None:
    _, *programs = programs_for(__file__, GUIDE, "python")
    assert len(programs) == 2
    for program in programs:
        compile(program, f"{GUIDE}.md", "exec")
