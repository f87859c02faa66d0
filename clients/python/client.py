"""`from gatehouse.client import …` without the server; beside the server, its package of this name is found first."""

from gatehouse_client import *  # noqa: F403
from gatehouse_client import __all__, __doc__  # noqa: A004, F401
