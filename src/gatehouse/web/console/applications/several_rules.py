"""Several new permissions at once, as pasted lines."""

from collections.abc import Iterator, Sequence
from typing import Final

from starlette.requests import Request

from gatehouse.permissions.commands.app_schemas import SchemaCommands
from gatehouse.permissions.documents.trees import MAX_PATH_SEGMENTS, SEGMENT, with_leaf
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.rules import Rule, RuleDefinition, RuleSection
from gatehouse.permissions.model.schema import Tree
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.console.applications.head import ApplicationHead, application_head, application_path
from gatehouse.web.console.applications.schema_changes import RULES_TAB, leaf_document, rules_of, section_of
from gatehouse.web.console.edit_screen import EditScreen, FormDraft, Saved, named_application
from gatehouse.web.console.frame import ApiCall, readable_schema_call
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

MAX_LINES: Final = 500


class SeveralRulesForm(CsrfForm, frozen=True, kw_only=True):
    section: str = RuleSection.PRIVATE.value
    lines: str = ""
    version: int = 0


class SeveralRulesContext(PageContext, frozen=True, kw_only=True):
    template = "console/applications/several_rules.html"

    head: ApplicationHead
    version: int
    max_lines: int
    call: ApiCall | None


class SeveralRulesScreens:
    def __init__(self, *, schemas: SchemaCommands, view: ConsoleView) -> None:
        self._schemas = schemas
        self._view = view

    async def _add(
        self, _request: Request, admin: AdminRequest, model: ApplicationModel, form: SeveralRulesForm
    ) -> Saved:
        """No one gains or loses anything by them, so there is no review: they are denied by default."""
        if form.section not in list(RuleSection):
            raise Malformed("section: choose private or public").on_screen("choose_section")
        section = RuleSection(form.section)
        tree = with_lines(section_of(model, section), form.lines, set(rules_of(model)), section)
        await self._schemas.save(admin.actor, model, {section.value: tree, "version": form.version})
        return Saved(address=application_path(model.application.application_id, RULES_TAB), message="rules_added")

    async def _page(
        self, _request: Request, admin: AdminRequest, model: ApplicationModel, _draft: FormDraft[SeveralRulesForm]
    ) -> SeveralRulesContext:
        return SeveralRulesContext(
            head=application_head(admin, model, RULES_TAB),
            version=model.schema.version,  # adding overwrites nothing, so that a second try may follow another save
            max_lines=MAX_LINES,
            call=readable_schema_call(admin.authenticated, model),
        )

    def routes(self) -> Sequence[ConsoleRoute]:
        return EditScreen(
            view=self._view,
            path="/applications/{application_id:int}/rules/several",
            form=SeveralRulesForm,
            load=named_application(Operation.SCHEMA_SAVE),
            form_of=lambda model: SeveralRulesForm(version=model.schema.version),
            page=self._page,
            save=self._add,
            creates=True,
        ).routes()


def with_lines(tree: Tree, text: str, known: set[Rule], section: RuleSection) -> Tree:
    """Return the tree with a permission for each line. Raises Malformed, which names the line."""
    lines = list(parse_lines(text))
    if not 1 <= len(lines) <= MAX_LINES:
        raise Malformed(f"lines: enter 1 to {MAX_LINES} permissions").on_screen("lines_count", max_lines=MAX_LINES)
    for number, path, description in lines:
        rule = Rule(section, path)
        if rule in known:
            raise Malformed(f"lines: line {number}: {path} already exists").on_screen(
                "line_exists", number=number, path=path
            )
        known.add(rule)
        try:
            tree = with_leaf(tree, path, leaf_document(RuleDefinition(description=description)))
        except Malformed:
            raise Malformed(f"lines: line {number}: {path} is a group of permissions, or below one").on_screen(
                "line_group", number=number, path=path
            ) from None
    return tree


def parse_lines(text: str) -> Iterator[tuple[int, str, str]]:
    """Number, name and description of each line that is not empty."""
    for number, line in enumerate(text.splitlines(), start=1):
        path, _, description = line.strip().partition(" ")
        if not path:
            continue
        segments = path.split(".")
        if len(segments) > MAX_PATH_SEGMENTS or not all(map(SEGMENT.fullmatch, segments)):
            raise Malformed(f"lines: line {number}: use letters, digits, _ and - with dots between them").on_screen(
                "line_characters", number=number
            )
        yield number, path, description.strip()
