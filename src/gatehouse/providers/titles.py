"""What the kinds of providers are called."""

from collections.abc import Mapping
from typing import Final

from gatehouse.providers.kinds import PRESETS

UNTITLED: Final = {"oidc": "OpenID Connect", "jwt": "JWT"}
KIND_TITLES: Final[Mapping[str, str]] = {kind: preset.title or UNTITLED[kind] for kind, preset in PRESETS.items()}
