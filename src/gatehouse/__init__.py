"""Gatehouse: single sign-on, game login and permissions, in one service."""

from importlib.metadata import version
from typing import Final

__version__: Final = version("gatehouse")
