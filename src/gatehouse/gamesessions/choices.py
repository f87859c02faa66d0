"""The three codes of which the game shows one (R4, cross-device phishing)."""

import hashlib
from typing import Final

from gatehouse.gamesessions.model import GameSession

LOWEST_CODE: Final = 10
CODE_COUNT: Final = 90  # 10 to 99
CHOICE_COUNT: Final = 3


def code_choices(session: GameSession) -> tuple[str, ...]:
    """The code among two others, always the same ones in the same order.

    Whoever loads the page twice must not learn which of them stays. Made from what only we know of the session.
    """
    seed = hashlib.sha256(b"choices" + session.location).digest()
    right = int(session.code)
    others = [number for number in (LOWEST_CODE + byte % CODE_COUNT for byte in seed[:-1]) if number != right]
    chosen = list(dict.fromkeys(others))[: CHOICE_COUNT - 1]
    chosen.insert(seed[-1] % CHOICE_COUNT, right)
    return tuple(map(str, chosen))
