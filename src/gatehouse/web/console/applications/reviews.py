"""Before rules or roles are saved: what will be different, and who gains and who loses by it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.model.nicks import NickStore
from gatehouse.kernel.background import OFF_LOOP_WEIGHT, run_off_loop
from gatehouse.permissions.documents.differences import differences
from gatehouse.permissions.errors import NoRight
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.schema_version import Difference
from gatehouse.permissions.questions.proposals import DryRuns, ProposalReach, Proposer, SchemaProposal
from gatehouse.permissions.questions.sight import refuse_about_everyone
from gatehouse.permissions.questions.simulate import Forecast, Simulation
from gatehouse.web.console.applications.head import ENTRY, ApplicationHead, application_head
from gatehouse.web.console.desk import AdminRequest, ConsoleView
from gatehouse.web.console.effects import PersonEffect, person_effect
from gatehouse.web.pages.contexts import PageContext

MAX_PEOPLE_SHOWN: Final = 50  # people


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaImpact:
    people: Sequence[PersonEffect]
    examined: int
    more: bool  # there may be others


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmationPrompt:
    """What is asked on the page: the words are `applications.review_<name>`; `fields` go along with the yes."""

    name: str
    tab: str
    action: str
    back: str
    fields: Sequence[tuple[str, str]]
    about: str = ""  # a rule, or the number of a version


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaReviewContext(PageContext):
    template = "console/applications/review.html"

    head: ApplicationHead
    question: ConfirmationPrompt
    changes: Sequence[Difference]
    outlook: SchemaImpact | None  # None: he may not see what people hold


class SchemaReview:
    def __init__(self, *, rehearsals: DryRuns, simulation: Simulation, nicks: NickStore, desk: ConsoleView) -> None:
        self._rehearsals = rehearsals
        self._simulation = simulation
        self._nicks = nicks
        self._desk = desk

    async def show(
        self,
        request: Request,
        guest: AdminRequest,
        model: ApplicationModel,
        given: Mapping[str, object],
        question: ConfirmationPrompt,
    ) -> Response:
        """Raises whatever the save would raise."""
        proposal = SchemaProposal(data=dict(given))
        by = Proposer(actor=guest.actor, model=model, central=guest.standing.central)
        rehearsed = await self._rehearsals.rehearse(proposal, by, ProposalReach())
        context = SchemaReviewContext(
            head=application_head(guest, model, question.tab),
            question=question,
            changes=await run_off_loop(OFF_LOOP_WEIGHT, differences, model, rehearsed.outline.model),
            outlook=await self._outlook(guest, proposal, by),
        )
        return self._desk.show(request, guest, ENTRY, context)

    async def _outlook(self, guest: AdminRequest, proposal: SchemaProposal, by: Proposer) -> SchemaImpact | None:
        try:
            refuse_about_everyone(guest.standing)  # as at simulate (R6)
        except NoRight:
            return None
        return await self._told(await self._simulation.run(proposal, by, after="", limit=MAX_PEOPLE_SHOWN))

    async def _told(self, forecast: Forecast) -> SchemaImpact:
        nicks = await self._nicks.nicks([one.user_id for one in forecast.effects])
        return SchemaImpact(
            people=[person_effect(one, nicks.get(one.user_id, "")) for one in forecast.effects],
            examined=forecast.examined,
            more=forecast.after is not None,
        )
