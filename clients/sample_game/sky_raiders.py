# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: INP001 - a program beside the file it uses
"""Sky Raiders: a game for the terminal whose players sign in with Gatehouse.

    python3 sky_raiders.py https://sso.studio.example --app-id 50001

All that is about signing in is in `play`; the rest is the show.
"""

import argparse
import secrets
import shutil
import signal
import sys
from pathlib import Path
from typing import Protocol

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))  # in a game of yours the file is beside it

from gatehouse_login import Result, Session, open_browser, sign_in

try:
    import segno  # draws the QR code; without it the game shows the link alone
except ImportError:
    segno = None

TITLE = r"""
   _____ __            ____        _     __
  / ___// /____  __   / __ \____ _(_)___/ /__  __________
  \__ \/ //_/ / / /  / /_/ / __ `/ / __  / _ \/ ___/ ___/
 ___/ / ,< / /_/ /  / _, _/ /_/ / / /_/ /  __/ /  (__  )
/____/_/|_|\__, /  /_/ |_|\__,_/_/\__,_/\___/_/  /____/
          /____/
"""
MARGIN = " " * 10
STATES = {
    "waiting": "Waiting for you",
    "opened": "The page is open",
    "signing_in": "You are signing in",
    "confirmed": "Confirmed",
}
ENDINGS = {
    "refused": "That did not work out. Ask the operators about record {error}.",
    "cancelled": "Maybe another time.",
    "unreachable": "The sign-in service cannot be reached ({error}).",
}


def play(base_url: str, *, app_id: int, factor: str, browser: bool, code: bool, screen: "Screen") -> Result:
    def show(session: Session) -> None:
        screen.invite(session)
        if browser:
            open_browser(session.url)

    return sign_in(base_url, app_id=app_id, factor=factor, code=code, show=show, on_state=screen.state)


def device_factor(kept: Path) -> str:
    """What binds the player's JWT to this device: made once, kept where only the player can read it."""
    if not kept.exists():
        kept.touch(mode=0o600)
        kept.write_text(secrets.token_urlsafe(32))
    return kept.read_text()


class Screen(Protocol):
    def invite(self, session: Session) -> None: ...

    def state(self, state: str) -> None: ...

    def end(self, result: Result) -> None: ...


class PlainScreen:
    """One line after the other, for pipes, logs and screen readers."""

    def invite(self, session: Session) -> None:
        say("Sky Raiders")
        say(f"Open this link to sign in: {session.url}")
        if session.code:
            say(f"Your code: {session.code}")

    def state(self, state: str) -> None:
        say(f"{STATES.get(state, state)}.")

    def end(self, result: Result) -> None:
        say(farewell(result))


class TerminalScreen:
    """Colours, the QR code, and a list of steps that fills up."""

    def __init__(self) -> None:
        self._seen = ""
        self._drawn = False

    def invite(self, session: Session) -> None:
        say(f"\033[36m{TITLE}\033[0m")
        for line in qr_lines(session.url):
            if len(line) + len(MARGIN) <= shutil.get_terminal_size().columns:
                say(f"{MARGIN}\033[97;40m{line}\033[0m")
        say(f"\n  Scan it with your phone, or open \033[4m{session.url}\033[0m")
        if session.code:
            say(f"  When you are asked, pick \033[1;7m {session.code} \033[0m")
        say("")
        self._draw()

    def state(self, state: str) -> None:
        self._seen = state if state in STATES else self._seen
        if self._drawn:
            self._draw()

    def end(self, result: Result) -> None:
        colour = 32 if result.outcome == "ok" else 33
        say(f"\n  \033[1;{colour}m{farewell(result)}\033[0m\n")

    def _draw(self) -> None:
        if self._drawn:
            sys.stdout.write(f"\033[{len(STATES)}A")
        self._drawn = True
        names = list(STATES)
        reached = names.index(self._seen) if self._seen else 0
        for number, text in enumerate(STATES.values()):
            done = number < reached or self._seen == "confirmed"
            mark = "\033[32m✔\033[0m" if done else "\033[33m●\033[0m" if number == reached else "\033[90m○\033[0m"
            say(f"\033[2K  {mark} {text}")


def qr_lines(url: str) -> list[str]:
    """Two modules to a character; the full block is white."""
    if segno is None:
        return []
    rows = [list(row) for row in segno.make(url, micro=False, error="l").matrix_iter(border=2)]
    rows += [[0] * len(rows[0])] * (len(rows) % 2)
    blocks = {(0, 0): "█", (0, 1): "▀", (1, 0): "▄", (1, 1): " "}
    pairs = zip(rows[::2], rows[1::2], strict=True)
    return ["".join(blocks[int(top), int(low)] for top, low in zip(*pair, strict=True)) for pair in pairs]


def farewell(result: Result) -> str:
    if result.outcome == "ok":
        return f"Welcome aboard, {printable(result.nick)}!"
    return ENDINGS[result.outcome].format(error=printable(result.error))


def printable(text: str) -> str:
    """A name must not steer the terminal."""
    return "".join(mark if mark.isprintable() else "?" for mark in text)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background had us ignore Ctrl-C
    words = argparse.ArgumentParser(description="A game whose players sign in with Gatehouse.")
    words.add_argument("base_url", help="where Gatehouse is: https://sso.studio.example")
    words.add_argument("--app-id", type=int, default=0, help="the application that stands for this game")
    words.add_argument("--plain", action="store_true", help="no colours, no QR code")
    words.add_argument("--no-browser", action="store_true", help="show the link, open nothing")
    words.add_argument("--no-code", action="store_true", help="show no code to pick on the page")
    words.add_argument("--factor-file", type=Path, default=Path.home() / ".sky-raiders-device")
    given = words.parse_args()
    screen: Screen = PlainScreen() if given.plain or not sys.stdout.isatty() else TerminalScreen()
    try:
        result = play(
            given.base_url,
            app_id=given.app_id,
            factor=device_factor(given.factor_file),
            browser=not given.no_browser,
            code=not given.no_code,
            screen=screen,
        )
    except KeyboardInterrupt:  # the session was closed on the way here
        result = Result("cancelled")
    except ValueError as wrong:
        words.error(str(wrong))
    screen.end(result)
    return 0 if result.outcome == "ok" else 1


if __name__ == "__main__":
    sys.exit(main())
