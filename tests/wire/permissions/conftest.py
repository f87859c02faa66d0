"""A studio on each database."""

import pytest

from tests.support.service import RunningService
from tests.support.studio import Studio, a_studio


@pytest.fixture
async def studio(service: RunningService) -> Studio:
    return await a_studio(service)
