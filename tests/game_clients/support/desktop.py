"""A desktop whose `xdg-open` reports its arguments to the test and opens nothing."""

import json
import socket
import sys
from pathlib import Path
from typing import Final

from tests.support.processes import LOOPBACK

TIMEOUT: Final = 60.0  # seconds: some programs are built first
XDG_OPEN: Final = """\
#!{python} -IS
import json, socket, sys
with socket.create_connection(("{host}", {port})) as test:
    test.sendall(json.dumps(sys.argv[1:]).encode() + b"\\n")
"""


class Desktop:
    def __init__(self, home: Path) -> None:
        self._test = socket.create_server((LOOPBACK, 0))
        self._test.settimeout(TIMEOUT)
        self._program = home / "xdg-open"
        words = {"python": sys.executable, "host": LOOPBACK, "port": self._test.getsockname()[1]}
        self._program.write_text(XDG_OPEN.format(**words))
        self._program.chmod(0o755)
        self._home = home

    @property
    def environment(self) -> dict[str, str]:
        """An environment in which that browser is the only program."""
        return {"PATH": str(self._home), "BROWSER": "/bin/false"}

    def remove_browser(self) -> None:
        self._program.unlink()

    def wait_for_open(self) -> list[str]:
        """Wait for the first call and return its arguments."""
        caller, _ = self._test.accept()
        with caller, caller.makefile() as lines:
            words: list[str] = json.loads(lines.readline())
            return words

    def nothing_was_opened(self) -> bool:
        """Whether nothing was opened so far; call it after the game has ended."""
        self._test.setblocking(False)
        try:
            self._test.accept()
        except BlockingIOError:
            return True
        return False

    def close(self) -> None:
        self._test.close()
