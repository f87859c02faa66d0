"""The part of the composition root that removes projects for good; loaded by the console and by the command line."""

from gatehouse.app.services.core import Services
from gatehouse.permissions.commands.full_removal import FullRemoval
from gatehouse.storage.permissions.full_removal import FullRemovalStorage


def full_removal(services: Services) -> FullRemoval:
    return FullRemoval(store=FullRemovalStorage(services.storage.runner), recorder=services.recorder)
