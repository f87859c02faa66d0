"""How this installation looks, from its settings."""

from pathlib import Path

from gatehouse.kernel.colours import Color
from gatehouse.kernel.pictures import image_media_type
from gatehouse.settings import Settings
from gatehouse.web.branding import DARK_LOGO_FILE, LOGO_FILE, BrandAssets, BrandFile


def branding(settings: Settings) -> BrandAssets:
    chosen = settings.branding
    paths = {LOGO_FILE: chosen.logo, DARK_LOGO_FILE: chosen.logo_dark}
    return BrandAssets(
        name=chosen.name,
        wordmark=chosen.wordmark,
        accent=Color.parse(chosen.accent) if chosen.accent else None,
        logos={name: load_logo(Path(path)) for name, path in paths.items() if path},
    )


def load_logo(path: Path) -> BrandFile:
    """Of a file that the settings have checked."""
    content = path.read_bytes()
    return BrandFile(media_type=image_media_type(content), content=content)
