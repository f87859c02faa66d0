"""A game for the tests: follows its arguments and prints what the client reports."""

import sys
import threading
import time
from pathlib import Path
from typing import Any

from gatehouse_login import (
    Result,
    Session,
    enter_code,
    open_browser,
    sign_in,
    sign_in_guest,
    sign_in_platform,
    upgrade,
)

base_urls, *words = sys.argv[1:]
asked = dict(word.split("=", 1) for word in words)
cancel = threading.Event()


def print_line(*line_words: str) -> None:
    sys.stdout.write(f"{' '.join(line_words)}\n")
    sys.stdout.flush()


def show(session: Session) -> None:
    print_line("link", session.url)
    print_line("code", session.code)
    print_line("qr", session.qr[:26])
    if "browser" in asked:
        open_browser(session.url)


def cancel_once_asked(file: Path) -> None:
    while not file.exists():
        time.sleep(0.02)
    cancel.set()


def on_state(state: str) -> None:
    print_line("state", state)


def options() -> dict[str, Any]:
    """What all calls take."""
    return {
        "app_id": int(asked.get("app_id", "0")),
        "factor": asked.get("factor", ""),
        "more": {"distr": asked["distr"]} if "distr" in asked else None,
        "cancel": cancel,
        "patience": float(asked.get("patience", "60")),
    }


def browser_options() -> dict[str, Any]:
    return {
        "code": "code" in asked,
        "qr": "qr" in asked,
        "id_token_client": asked.get("id_token_client", ""),
        "nonce": asked.get("nonce", ""),
        "show": None if "default" in asked else show,
        "on_state": on_state,
        "poll_timeout": float(asked.get("poll_timeout", "40")),
    }


def act(action: str, base_url: str) -> Result:
    if action == "guest":
        return sign_in_guest(base_url, device_key=bytes.fromhex(asked["key"]), **options())
    if action == "platform":
        return sign_in_platform(base_url, platform="steam", ticket=asked["ticket"], **options())
    if action == "code":
        return enter_code(base_url, request_id=request_id, otp=asked["otp"], cancel=cancel)
    if action == "upgrade":
        return upgrade(base_url, device_key=bytes.fromhex(asked["key"]), **options(), **browser_options())
    return sign_in(base_url, **options(), **browser_options())


if "cancel" in asked:
    threading.Thread(target=cancel_once_asked, args=(Path(asked["cancel"]),), daemon=True).start()
request_id = ""  # of the last refusal
for base_url in base_urls.split(","):
    for action in asked.get("do", "sign_in").split(","):
        try:
            result = act(action, base_url)
        except ValueError:
            print_line("outcome", "invalid")
        else:
            request_id = result.data.get("request_id", request_id)
            print_line("outcome", result.outcome)
            print_line("user_id", result.user_id)
            print_line("nick", result.nick)
            print_line("jwt", result.jwt)
            print_line("error", result.error)
            print_line("ban", f"{result.reason} {result.public_text} {result.until}")
            print_line("printed", repr(result))
            print_line("id_token", result.data.get("id_token", ""))
            print_line("url", result.data.get("url", ""))
print_line("end")
