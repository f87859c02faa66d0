"""The plainest occasion: a person signs in to see his own account, or a page of ours that he asked for."""

from typing import Final

from gatehouse.audit.model import Origin
from gatehouse.interaction.model import Destination, Interaction, Step

KIND: Final = "account"
TO: Final = "to"  # in `ask`: the page to go on to; written by us alone


class AccountOccasion:
    async def destination(self, interaction: Interaction) -> Destination:  # noqa: ARG002 - the protocol's signature
        return Destination()

    async def next_step(self, interaction: Interaction) -> Step:  # noqa: ARG002
        return Step.DONE

    async def finish(self, interaction: Interaction, origin: Origin) -> str:  # noqa: ARG002
        return interaction.ask.get(TO, "/account")
