# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: INP001 - one file that is copied into a game, no package
"""Sign a player in to a game with Gatehouse: copy this file into your game. Python 3.10 or newer, nothing else.

    factor = device_factor("device")
    result = sign_in("https://sso.studio.example", app_id=50001, factor=factor)
    if result.outcome == "ok":
        print("Hello,", result.nick)

`sign_in` opens the system browser, waits until the player has confirmed there, and returns. It blocks: run it in a
thread of its own, and set `cancel` when the player gives up. Only `device_factor` writes a file, and the printed form
of a result keeps its tokens to itself.

`sign_in_guest` and `sign_in_platform` need no browser; `upgrade` gives a guest an account, through the browser.
Guests need the package `cryptography`.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import itertools
import json
import os
import re
import secrets
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

GAME_SESSION = "/proxy/api/gameSession/"
# https anywhere, plain http to this very machine; no user part, no blanks, nothing a command line could misread.
ADDRESS = re.compile(
    r"(?:https://(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])|http://(?:localhost|127\.0\.0\.1|\[::1\]))(?::[0-9]{1,5})?"
    r"(?P<path>/[A-Za-z0-9._~/-]*)?(?P<query>\?[A-Za-z0-9._~%&=+/-]*)?"
)
LOCATION = re.compile(r"[?&]location=([A-Za-z0-9._~%+/=-]{1,500})")
LONGEST_ANSWER = 1 << 20  # bytes
SHORT_TIMEOUT = 15.0  # seconds for everything that is not held
LEAST_TIMEOUT = 1.0  # seconds: what comes at the end of all patience is still a try
SESSION_LIVES = 1200.0  # seconds; no session of the service gets older
LONGEST_PAUSE = 90.0  # seconds: an unpolled session ends after 120, so a longer Retry-After is an end
CANCEL_SEEN_WITHIN = 0.1  # seconds
GUEST = "/proxy/api/guest"
PLATFORM_LOGIN = "/proxy/api/platformLogin"
LOGIN = "/proxy/api/login"
KEY_BYTES = 32
FACTOR_BYTES = 32
DEVICE_FACTOR = re.compile(r"[0-9a-f]{64}")
MOST_PARTS = 64  # of a puzzle
MOST_BITS = 32
REASONS = {
    "2STEP": "second_factor",
    "2STEPERROR": "wrong_code",
    "TERMS": "terms",
    "BLOCKED": "throttled",
    "LOGINERROR": "login_error",
    "DENIED": "denied",
}


@dataclass(frozen=True)
class Session:
    """What the player needs: open `url` on any device; `code` and `qr` (an SVG data URI) are there when asked for."""

    gsid: str
    url: str
    code: str = ""
    qr: str = field(default="", repr=False)
    location: str = field(default="", repr=False)


@dataclass(frozen=True)
class Result:
    """How it ended. `outcome` is one of these.

    - "ok": signed in; `data` is everything the service told.
    - "refused": the player said no, or the service did; `error` is a record id that its operators can look up. For a
      banned player `reason` is "banned": show `public_text`, and `until` (Unix time, 0 for no end). For guests and
      platforms it can be "second_factor": ask for a code of `data["methods"]` and call `enter_code`; "wrong_code":
      ask again; "no_account": sign in through the browser; "terms": open `data["url"]`, then sign in again;
      "throttled"; "login_error": the key or ticket is not accepted.
    - "cancelled": the game cancelled.
    - "unreachable": the service cannot be reached; `error` says how.
    """

    outcome: str
    user_id: str = ""
    nick: str = ""
    jwt: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    error: str = ""
    reason: str = ""
    public_text: str = ""
    until: int = 0
    data: dict[str, Any] = field(default_factory=dict, repr=False)


def sign_in(
    base_url: str,
    *,
    app_id: int = 0,
    factor: str = "",
    code: bool = False,
    qr: bool = False,
    id_token_client: str = "",  # a client of the application that gets an id_token, which is in `data`
    nonce: str = "",  # of the id_token
    more: dict[str, Any] | None = None,  # further fields of getGsid
    show: Callable[[Session], Any] | None = None,  # instead of opening the browser
    on_state: Callable[[str], Any] | None = None,  # waiting, opened, signing_in, confirmed, cancelled
    cancel: threading.Event | None = None,
    poll_timeout: float = 40.0,  # seconds; a poll is held for up to 30
    patience: float = 90.0,  # seconds without a whole answer until the service counts as unreachable
) -> Result:
    client = _Client(base_url, on_state or (lambda _: None), cancel or threading.Event(), patience)
    wanted = {"factor": factor, "code": "1" if code else "", "qr": "1" if qr else ""}
    wanted |= {"id_token_client": id_token_client, "nonce": nonce}
    asked = {name: value for name, value in wanted.items() if value}
    session = client.register({"app_id": app_id, **asked, **(more or {})})
    if isinstance(session, Result):
        return session
    try:
        (show or (lambda shown: open_browser(shown.url)))(session)
        client.tell("waiting")
        result = client.wait(session, poll_timeout)
    except BaseException:  # what the game raised ends the session too
        client.close(session, "Error")
        raise
    if result.outcome != "refused":  # a refused session has ended by itself
        client.close(session, "Success" if result.outcome == "ok" else "Error")
    return result


def new_device_key() -> bytes:
    """Make the key of a guest. Store it where only the player can read it: it is the account."""
    return secrets.token_bytes(KEY_BYTES)


def device_factor(path: str | os.PathLike[str]) -> str:
    """Return the secret of this device. It is made at the first call, in a file that only the player can read."""
    file = os.fspath(path)
    try:
        with open(file, encoding="ascii") as kept:  # noqa: PTH123 - paths of any kind
            factor = kept.read().strip()
    except FileNotFoundError:
        factor = ""
    if DEVICE_FACTOR.fullmatch(factor):
        return factor
    factor, new = secrets.token_hex(FACTOR_BYTES), f"{file}.{secrets.token_hex(4)}"
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as kept:
        kept.write(factor)
    os.replace(new, file)  # noqa: PTH105 - never a half-written file
    return factor


def sign_in_guest(
    base_url: str,
    *,
    device_key: bytes,
    app_id: int = 0,
    factor: str = "",
    more: dict[str, Any] | None = None,  # further fields of the request
    cancel: threading.Event | None = None,
    patience: float = 90.0,
) -> Result:
    """Sign in without an account. The same key finds the same guest again."""
    client = _Client(base_url, lambda _: None, cancel or threading.Event(), patience)
    key = _DeviceKey(device_key)
    answer = client.post(GUEST, {"app_id": app_id, "device_key": key.public_text})
    asked = {"app_id": app_id, **({"factor": factor} if factor else {}), **(more or {})}
    for _ in range(2):  # the first may be asked to solve a puzzle
        challenge = _text(answer.body, "challenge") if answer else ""
        if answer is None or not challenge:
            break
        solved = client.solve(answer.body.get("puzzle"))
        answer = None if solved is None else client.post(GUEST, {**asked, **key.sign(challenge), **solved})
    return _logged_in(answer)


def sign_in_platform(
    base_url: str,
    *,
    platform: str,
    ticket: str,
    app_id: int = 0,
    factor: str = "",
    more: dict[str, Any] | None = None,
    cancel: threading.Event | None = None,
    patience: float = 90.0,
) -> Result:
    """Sign in with a ticket of the player's game platform, such as "steam"."""
    client = _Client(base_url, lambda _: None, cancel or threading.Event(), patience)
    asked = {"platform": platform, "ticket": ticket, "app_id": app_id, **({"factor": factor} if factor else {})}
    return _logged_in(client.post(PLATFORM_LOGIN, {**asked, **(more or {})}))


def enter_code(
    base_url: str,
    *,
    request_id: str,
    otp: str,
    method: str = "",
    cancel: threading.Event | None = None,
    patience: float = 90.0,
) -> Result:
    """Continue a sign-in that was refused with the reason "second_factor", with the code that the player entered.

    `request_id` is in the `data` of that result. With method "email" and an empty code the service sends one.
    """
    client = _Client(base_url, lambda _: None, cancel or threading.Event(), patience)
    asked = {"request_id": request_id, "otp": otp, "method": method}
    return _logged_in(client.post(LOGIN, {name: value for name, value in asked.items() if value}))


def upgrade(
    base_url: str,
    *,
    device_key: bytes,
    app_id: int = 0,
    more: dict[str, Any] | None = None,
    cancel: threading.Event | None = None,
    patience: float = 90.0,
    **options: Any,  # noqa: ANN401 - of sign_in
) -> Result:
    """Give a guest an account, through the browser; options as for `sign_in`.

    The player registers, or signs in to the account that gets everything the guest has. Show the code of the session:
    the player has to pick it. Afterwards the key no longer works; delete it.
    """
    client = _Client(base_url, lambda _: None, cancel or threading.Event(), patience)
    answer = client.post(GUEST, {"app_id": app_id, "intent": "upgrade"})
    challenge = _text(answer.body, "challenge") if answer else ""
    if not challenge:
        return _logged_in(answer)
    proved = {"intent": "upgrade", **_DeviceKey(device_key).sign(challenge)}
    fields = {**(more or {}), **proved}
    return sign_in(base_url, app_id=app_id, more=fields, cancel=cancel, patience=patience, **options)


def open_browser(url: str) -> bool:
    """Open the system browser. No shell ever sees the address."""
    if ADDRESS.fullmatch(url) is None:
        return False
    try:
        if sys.platform == "win32":
            os.startfile(url)  # noqa: S606
        else:
            opener = "open" if sys.platform == "darwin" else "xdg-open"
            quiet = subprocess.DEVNULL
            started = subprocess.Popen([opener, url], stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)  # noqa: S603
            threading.Thread(target=started.wait, daemon=True).start()  # it leaves no zombie
    except OSError:
        return False
    return True


class _DeviceKey:
    def __init__(self, seed: bytes) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - guests only

        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self.public_text = base64.b64encode(self._key.public_key().public_bytes_raw()).decode()

    def sign(self, challenge: str) -> dict[str, str]:
        """The fields that prove the key."""
        signature = base64.b64encode(self._key.sign(challenge.encode())).decode()
        return {"device_key": self.public_text, "challenge": challenge, "signature": signature}


@dataclass(frozen=True)
class _Answer:
    status: int  # of HTTP; 0 when there was none
    body: dict[str, Any]
    location: str = ""
    retry_after: str = ""
    timed_out: bool = False
    error: str = ""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:  # noqa: ANN401
        return None


class _Client:
    def __init__(
        self, base_url: str, on_state: Callable[[str], Any], cancel: threading.Event, patience: float
    ) -> None:
        address = ADDRESS.fullmatch(base_url)
        if address is None or address["query"] is not None:
            raise ValueError("base_url must be https, or http on this machine")
        self._base = base_url.rstrip("/")
        self._on_state = on_state
        self._cancel = cancel
        self._patience = patience
        self._answered = time.monotonic()
        self._state = ""
        handlers = [_NoRedirects(), urllib.request.HTTPSHandler(context=ssl.create_default_context())]
        if base_url.startswith("http:"):
            handlers.append(urllib.request.ProxyHandler({}))  # no proxy leads to this machine
        self._opener = urllib.request.build_opener(*handlers)

    def register(self, asked: dict[str, Any]) -> Session | Result:
        answer = self._ask(GAME_SESSION + "getGsid", asked, SHORT_TIMEOUT)
        if answer is None:
            return Result("cancelled")
        body = answer.body
        if body.get("status") == "OK" and ADDRESS.fullmatch(_text(body, "url")) and _text(body, "gsid"):
            found = LOCATION.search(answer.location)
            shown = (_text(body, "gsid"), _text(body, "url"), _text(body, "code"), _text(body, "qr"))
            return Session(*shown, location=found[1] if found else "")
        if answer.status and body.get("status") == "ERROR":
            return _refused(body)
        return Result("unreachable", error=answer.error or f"HTTP {answer.status}")

    def wait(self, session: Session, poll_timeout: float) -> Result:
        started = self._answered = time.monotonic()
        pause = 1.0
        while time.monotonic() - started < SESSION_LIVES:
            asked = {"gsid": session.gsid, "states": "1"}
            answer = self._ask(GAME_SESSION + "getGsidResult", asked, poll_timeout, session.location)
            if answer is None:
                return Result("cancelled")
            wait, result = self._judge(answer)
            if result is not None:
                return result
            if wait is not None:
                self._answered, pause = time.monotonic(), 1.0
            elif self._patience_left() <= 0:
                return Result("unreachable", error=answer.error or f"HTTP {answer.status}")
            elif answer.timed_out:
                wait = 0.0
            else:
                wait, pause = min(pause, self._patience_left()), min(2 * pause, 8.0)
            if self._cancel.wait(wait):
                return Result("cancelled")
        return Result("unreachable", error="the session is too old")

    def close(self, session: Session, status: str) -> None:
        closing = {"gsid": session.gsid, "status": status}
        self._ask(GAME_SESSION + "closeGsid", closing, SHORT_TIMEOUT, session.location, cancel=threading.Event())

    def tell(self, state: str) -> None:
        if state and state != self._state:
            self._state = state
            self._on_state(state)

    def _judge(self, answer: _Answer) -> tuple[float | None, Result | None]:
        """How long to wait before the next poll (None: there was no answer), or the end."""
        body, status = answer.body, answer.body.get("status")
        if answer.status == 429:  # noqa: PLR2004
            wait = float(answer.retry_after) if answer.retry_after.isdigit() else 60.0
            ended = _refused(body) if wait > LONGEST_PAUSE else None
            return wait, ended
        if answer.status == 403 or (status == "ERROR" and answer.status < 500):  # noqa: PLR2004 - 5xx may pass
            self.tell(_text(body, "state"))
            return None, _refused(body)
        if answer.status == 200 and status == "RETRY":  # noqa: PLR2004
            self.tell(_text(body, "state"))
            delay = body.get("delay")
            return float(delay) if isinstance(delay, int) and delay >= 0 else 1.0, None
        return None, self._judge_ending(body) if answer.status == 200 else None  # noqa: PLR2004

    def _judge_ending(self, body: dict[str, Any]) -> Result | None:
        if body.get("status") == "CANCELLED":
            self.tell("cancelled")
            return Result("cancelled")
        if body.get("status") != "OK":
            return None
        self.tell("confirmed")
        return _signed_in(body)

    def _patience_left(self) -> float:
        return self._answered + self._patience - time.monotonic()

    def post(self, path: str, asked: dict[str, Any]) -> _Answer | None:
        """The answer, or None once the game has cancelled."""
        return self._ask(path, asked, SHORT_TIMEOUT)

    def solve(self, puzzle: Any) -> dict[str, str] | None:  # noqa: ANN401
        """The fields with the solution, if there is a puzzle; None once the game has cancelled."""
        if not isinstance(puzzle, dict):
            return {}
        parts, bits = puzzle.get("parts"), puzzle.get("difficulty")
        solvable = isinstance(parts, int) and isinstance(bits, int) and parts <= MOST_PARTS and 0 <= bits <= MOST_BITS
        seed, numbers = hashlib.sha256(_text(puzzle, "puzzle").encode()).digest(), []
        for part in range(parts if solvable else 0):
            for number in itertools.count():
                if number % 4096 == 0 and self._cancel.is_set():
                    return None
                digest = hashlib.sha256(seed + bytes([part]) + number.to_bytes(4, "big")).digest()
                if int.from_bytes(digest[:4], "big") >> (32 - bits) == 0:
                    numbers.append(str(number))
                    break
        self._answered = time.monotonic()
        return {"puzzle": _text(puzzle, "puzzle"), "solution": ".".join(numbers)}

    def _ask(
        self,
        path: str,
        body: dict[str, Any],
        timeout: float,
        location: str = "",
        *,
        cancel: threading.Event | None = None,
    ) -> _Answer | None:
        """The answer, or None once the game has cancelled: a held poll is then left to itself.

        So is an answer that comes byte by byte: the limits of a socket begin again with each of them.
        """
        cancel = cancel or self._cancel
        timeout = min(timeout, max(self._patience_left(), LEAST_TIMEOUT))
        ends = time.monotonic() + timeout
        answers: list[_Answer] = []
        asking = threading.Thread(
            target=lambda: answers.append(self._send(path, body, timeout, location)), daemon=True
        )
        asking.start()
        while asking.is_alive() and not cancel.is_set():
            if time.monotonic() >= ends:
                return _Answer(0, {}, timed_out=True, error="TimeoutError")
            asking.join(CANCEL_SEEN_WITHIN)
        return answers[0] if answers else None

    def _send(self, path: str, body: dict[str, Any], timeout: float, location: str = "") -> _Answer:
        address = self._base + path + (f"?location={location}" if location else "")
        headers = {"Content-Type": "application/json", "User-Agent": "gatehouse-login/1 (Python)"}
        request = urllib.request.Request(address, json.dumps(body).encode(), headers)  # noqa: S310 - see ADDRESS
        try:
            try:
                response = self._opener.open(request, timeout=timeout)
            except urllib.error.HTTPError as refused:
                response = refused
            with response:
                return _read(response)
        except (OSError, ValueError, http.client.HTTPException) as failure:
            reason = getattr(failure, "reason", failure)
            timed_out = isinstance(failure, TimeoutError) or isinstance(reason, TimeoutError)
            return _Answer(0, {}, timed_out=timed_out, error=type(reason).__name__)


def _read(response: Any) -> _Answer:  # noqa: ANN401
    try:
        body = json.loads(response.read(LONGEST_ANSWER))
    except ValueError:
        body = {}
    headers = response.headers
    return _Answer(
        response.status,
        body if isinstance(body, dict) else {},
        location=headers.get("Location", ""),
        retry_after=headers.get("Retry-After", ""),
    )


def _logged_in(answer: _Answer | None) -> Result:
    """The answer of a login without a browser."""
    if answer is None:
        return Result("cancelled")
    body, status = answer.body, _text(answer.body, "status")
    if answer.status == 200 and status == "OK":  # noqa: PLR2004
        return _signed_in(body)
    if not 200 <= answer.status < 500 or (answer.status == 200 and status not in REASONS):  # noqa: PLR2004
        return Result("unreachable", error=answer.error or f"HTTP {answer.status}")
    reason = "throttled" if answer.status == 429 else REASONS.get(status, "")  # noqa: PLR2004
    refused = _refused(body)
    return replace(refused, reason=refused.reason or reason, data=body)


def _signed_in(body: dict[str, Any]) -> Result:
    return Result("ok", **{name: _text(body, name) for name in ("user_id", "nick", "jwt", "token")}, data=body)


def _refused(body: dict[str, Any]) -> Result:
    told, until = {name: _text(body, name) for name in ("error", "reason", "public_text")}, body.get("until")
    return Result("refused", **told, until=until if isinstance(until, int) else 0)


def _text(body: dict[str, Any], name: str) -> str:
    value = body.get(name, "")
    return value if isinstance(value, str) else ""
