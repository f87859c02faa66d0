"""A furnished studio, on each database in turn, and people who come into its console."""

from collections.abc import AsyncIterator

import pytest

from tests.support.console import Visitors, furnish
from tests.support.service import Service


@pytest.fixture
async def studio(service: Service) -> Service:
    await furnish(service)
    return service


@pytest.fixture
async def inside(studio: Service) -> AsyncIterator[Visitors]:
    visitors = Visitors(studio)
    yield visitors
    await visitors.leave()
