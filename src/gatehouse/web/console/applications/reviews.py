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
    def __init__(self, *, dry_runs: DryRuns, simulation: Simulation, nicks: NickStore, view: ConsoleView) -> None:
        self._dry_runs = dry_runs
        self._simulation = simulation
        self._nicks = nicks
        self._view = view

    async def render(
        self,
        request: Request,
        admin: AdminRequest,
        model: ApplicationModel,
        document: Mapping[str, object],
        prompt: ConfirmationPrompt,
    ) -> Response:
        """Raises whatever the save would raise."""
        proposal = SchemaProposal(data=dict(document))
        by = Proposer(actor=admin.actor, model=model, central=admin.authenticated.central)
        rehearsed = await self._dry_runs.run(proposal, by, ProposalReach())
        context = SchemaReviewContext(
            head=application_head(admin, model, prompt.tab),
            question=prompt,
            changes=await run_off_loop(OFF_LOOP_WEIGHT, differences, model, rehearsed.snapshot.model),
            outlook=await self._impact(admin, proposal, by),
        )
        return self._view.render(request, admin, ENTRY, context)

    async def _impact(self, admin: AdminRequest, proposal: SchemaProposal, by: Proposer) -> SchemaImpact | None:
        try:
            refuse_about_everyone(admin.authenticated)  # as at simulate (R6)
        except NoRight:
            return None
        return await self._describe(await self._simulation.run(proposal, by, after="", limit=MAX_PEOPLE_SHOWN))

    async def _describe(self, forecast: Forecast) -> SchemaImpact:
        nicks = await self._nicks.nicks([one.user_id for one in forecast.effects])
        return SchemaImpact(
            people=[person_effect(one, nicks.get(one.user_id, "")) for one in forecast.effects],
            examined=forecast.examined,
            more=forecast.after is not None,
        )
