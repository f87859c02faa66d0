"""Before rules or roles are saved: what will be different, and who gains and who loses by it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.model.nicks import NickStore
from gatehouse.kernel.background import HEAVY, run_off_loop
from gatehouse.permissions.documents.differences import differences
from gatehouse.permissions.errors import NoRight
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.schema_version import Difference
from gatehouse.permissions.questions.proposals import Proposer, Reach, Rehearsals, SchemaProposal
from gatehouse.permissions.questions.sight import refuse_about_everybody
from gatehouse.permissions.questions.simulate import Forecast, Simulation
from gatehouse.web.console.applications.head import HERE, ApplicationHead, head
from gatehouse.web.console.desk import ConsoleDesk, Guest
from gatehouse.web.console.effects import PersonEffect, person_effect
from gatehouse.web.pages.contexts import PageContext

SHOWN_MOST: Final = 50  # people


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    people: Sequence[PersonEffect]
    examined: int
    more: bool  # there may be others


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked on the page: the words are `applications.review_<name>`; `fields` go along with the yes."""

    name: str
    tab: str
    action: str
    back: str
    fields: Sequence[tuple[str, str]]
    about: str = ""  # a rule, or the number of a version


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewContext(PageContext):
    template = "console/applications/review.html"

    head: ApplicationHead
    question: Question
    changes: Sequence[Difference]
    outlook: Outlook | None  # None: he may not see what people hold


class Reviews:
    def __init__(
        self, *, rehearsals: Rehearsals, simulation: Simulation, nicks: NickStore, desk: ConsoleDesk
    ) -> None:
        self._rehearsals = rehearsals
        self._simulation = simulation
        self._nicks = nicks
        self._desk = desk

    async def show(
        self,
        request: Request,
        guest: Guest,
        model: ApplicationModel,
        given: Mapping[str, object],
        question: Question,
    ) -> Response:
        """Raises whatever the save would raise."""
        proposal = SchemaProposal(data=dict(given))
        by = Proposer(actor=guest.actor, model=model, central=guest.standing.central)
        rehearsed = await self._rehearsals.rehearse(proposal, by, Reach())
        context = ReviewContext(
            head=head(guest, model, question.tab),
            question=question,
            changes=await run_off_loop(HEAVY, differences, model, rehearsed.outline.model),
            outlook=await self._outlook(guest, proposal, by),
        )
        return self._desk.show(request, guest, HERE, context)

    async def _outlook(self, guest: Guest, proposal: SchemaProposal, by: Proposer) -> Outlook | None:
        try:
            refuse_about_everybody(guest.standing)  # as at simulate (R6)
        except NoRight:
            return None
        return await self._told(await self._simulation.run(proposal, by, after="", limit=SHOWN_MOST))

    async def _told(self, forecast: Forecast) -> Outlook:
        nicks = await self._nicks.nicks([one.user_id for one in forecast.effects])
        return Outlook(
            people=[person_effect(one, nicks.get(one.user_id, "")) for one in forecast.effects],
            examined=forecast.examined,
            more=forecast.after is not None,
        )
