"""The templates of pages, imported with the first page: a start needs none."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from gatehouse import __version__
from gatehouse.permissions.evaluation.contributions import SourceKind
from gatehouse.sign_in_flow.questions import NetworkNearness
from gatehouse.web.pages import stacked_tables, template_filters
from gatehouse.web.pages.assets import Assets
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.vocabulary import AccountSection, FactorMethod, GameEnd, MailPurpose, Theme

# Templates compare with the same enums as handlers: a misspelled one fails the first rendering.
TEMPLATE_CHOICES: Final[Mapping[str, object]] = {
    "Path": Path,
    "Method": FactorMethod,
    "Section": AccountSection,
    "Theme": Theme,
    "MailPurpose": MailPurpose,
    "GameEnd": GameEnd,
    "Nearness": NetworkNearness,
    "SourceKind": SourceKind,
}


@lru_cache(maxsize=1)  # templates are compiled once per process
def template_environment(assets: Assets) -> Environment:
    environment = Environment(
        loader=PackageLoader("gatehouse.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        TEMPLATE_CHOICES,
        asset=assets.address,
        icon=assets.icon,
        avatar=template_filters.avatar,
        version=__version__,
    )
    environment.filters.update(
        foldable=template_filters.breakable_email,
        grouped=template_filters.group_characters,
        qr_code=template_filters.qr_code,
        stackable=stacked_tables.stackable,
        at_field=stacked_tables.at_field,
        code_spans=stacked_tables.code_spans,
    )
    return environment
