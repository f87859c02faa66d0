"""The three codes of which the game shows one (R4, cross-device phishing)."""

import hashlib
from typing import Final

from gatehouse.gamesessions.model import GameSession

LOWEST: Final = 10
CODES: Final = 90  # 10 to 99
SHOWN: Final = 3


def choices_of(session: GameSession) -> tuple[str, ...]:
    """The code among two others, always the same ones in the same order.

    Whoever loads the page twice must not learn which of them stays. Made from what only we know of the session.
    """
    seed = hashlib.sha256(b"choices" + session.location).digest()
    right = int(session.code)
    others = [number for number in (LOWEST + byte % CODES for byte in seed[:-1]) if number != right]
    chosen = list(dict.fromkeys(others))[: SHOWN - 1]
    chosen.insert(seed[-1] % SHOWN, right)
    return tuple(map(str, chosen))
