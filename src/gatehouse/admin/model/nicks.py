"""Names for user ids that a screen has to show."""

from collections.abc import Collection, Mapping
from typing import Protocol


class NickStore(Protocol):
    async def nicks(self, user_ids: Collection[str]) -> Mapping[str, str]:
        """By user id; who is not there any more is left out."""
