"""`python -m gatehouse.storage.migrations`: bring the database named on stdin to the newest revision."""

import sys
from pathlib import Path

from alembic import command
from alembic.config import Config


def upgrade(url: str, *, versions: Path | None = None, revision: str = "head") -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.set_main_option("path_separator", "os")
    if versions is not None:
        config.set_main_option("version_locations", str(versions))
    config.attributes["url"] = url
    command.upgrade(config, revision)


if __name__ == "__main__":
    upgrade(sys.stdin.read().strip())
