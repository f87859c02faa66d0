"""The plainest occasion: a person signs in to see his own account."""

from typing import Final

from gatehouse.interaction.model import Interaction, Step

KIND: Final = "account"


class AccountOccasion:
    async def next_step(self, interaction: Interaction) -> Step:  # noqa: ARG002 - the protocol's signature
        return Step.DONE

    async def finish(self, interaction: Interaction) -> str:  # noqa: ARG002
        return "/account"
