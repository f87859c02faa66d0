"""What /metrics tells, and that the queries of our board and alerts find it."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
import yaml

from gatehouse.audit.model import AuditOrigin
from tests.support.browser import PASSWORD
from tests.support.capabilities import PROMETHEUS, require_program
from tests.support.find_programs import ROOT
from tests.support.game import ANNA, register_game
from tests.support.processes import LOOPBACK, WatchedProcess, free_port
from tests.support.service import RunningService, running_service
from tests.support.tls import NO_TRUST_STORE

TOKEN: Final = "the token of the metrics reader"
ENVIRONMENT: Final = {"GATEHOUSE__OPERATIONS__TOKEN": TOKEN}
ALERTS: Final = ROOT / "deploy" / "prometheus" / "alerts.yml"
BOARD: Final = ROOT / "deploy" / "grafana" / "gatehouse.json"
PAGE: Final = ROOT / "docs" / "operations" / "monitoring.md"
METRIC_NAME: Final = re.compile(r"\b(?:gatehouse|process)_[a-z_]+")
FAMILY: Final = re.compile(r"^# TYPE (\S+) (\S+)$", re.MULTILINE)


async def read_metrics(service: RunningService) -> str:
    response = await service.client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert response.status_code == 200
    return response.text


def sample_names(text: str) -> set[str]:
    """Every name that a query may use."""
    histogram = ("_bucket", "_sum", "_count")
    return {
        f"{name}{suffix}"
        for name, kind in FAMILY.findall(text)
        for suffix in (histogram if kind == "histogram" else ("",))
    }


def queries() -> Iterator[str]:
    for panel in json.loads(BOARD.read_text())["panels"]:
        yield from (target["expr"].replace("$__rate_interval", "1m") for target in panel["targets"])
    for group in yaml.safe_load(ALERTS.read_text())["groups"]:
        yield from (rule["expr"] for rule in group["rules"])


@pytest.mark.both_databases
async def test_metrics_count_sign_ins_games_and_connections(migrated_url: str, tmp_path: Path) -> None:
    async with running_service(migrated_url, tmp_path, environment=ENVIRONMENT) as service:
        await service.services.accounts.administration.create(
            login=ANNA, nick="Anna", password=PASSWORD, origin=AuditOrigin(actor="test")
        )
        for password in (PASSWORD, "wrong", "wrong too"):
            await service.client.post("/proxy/api/login", json={"login": ANNA, "password": password})
        await register_game(service)
        lines = (await read_metrics(service)).splitlines()
    assert 'gatehouse_sign_ins_total{method="login",result="success"} 1.0' in lines
    assert 'gatehouse_sign_ins_total{method="login",result="refused"} 2.0' in lines
    assert 'gatehouse_game_sessions_total{outcome="registered"} 1.0' in lines
    limits = [line for line in lines if line.startswith('gatehouse_database_connections{state="limit"}')]
    assert limits == (['gatehouse_database_connections{state="limit"} 10.0'] if "postgresql" in migrated_url else [])


async def test_sealing_lag_grows_until_everything_is_sealed(migrated_url: str, tmp_path: Path) -> None:
    async with running_service(migrated_url, tmp_path, environment=ENVIRONMENT) as service:
        sealer = service.services.audit.sealer
        await service.clock.advance(90)
        assert sealer.lag >= 90
        await sealer.seal_all()
        assert "gatehouse_audit_sealing_lag_seconds 0.0" in (await read_metrics(service)).splitlines()


async def test_every_query_of_board_and_alerts_runs_on_live_metrics(migrated_url: str, tmp_path: Path) -> None:
    program = require_program(PROMETHEUS)
    async with running_service(migrated_url, tmp_path / "data", environment=ENVIRONMENT) as service:
        names = sample_names(await read_metrics(service))
        asked = {name for query in queries() for name in METRIC_NAME.findall(query)}
        assert asked <= names
        documented = {name for name in METRIC_NAME.findall(PAGE.read_text()) if name != "process_"}
        assert {name.partition("_bucket")[0] for name in asked if name.startswith("gatehouse")} <= documented
        config = scrape_config(service.client.base_url.port or 0)
        (tmp_path / "prometheus.yml").write_text(json.dumps(config))
        address = f"{LOOPBACK}:{free_port()}"
        command = [
            str(program),
            f"--config.file={tmp_path / 'prometheus.yml'}",
            f"--storage.tsdb.path={tmp_path / 'tsdb'}",
            f"--web.listen-address={address}",
        ]
        with WatchedProcess(command) as process:
            await asyncio.to_thread(process.wait_for_line, "Server is ready", process.stderr)
            async with httpx2.AsyncClient(base_url=f"http://{address}", verify=NO_TRUST_STORE) as prometheus:
                async with asyncio.timeout(30):
                    while await value_of(prometheus, 'up{job="gatehouse"}') != [1.0]:  # noqa: ASYNC110 - another program
                        await asyncio.sleep(0.1)
                for query in queries():
                    await value_of(prometheus, query)
                assert await value_of(prometheus, "count(gatehouse_audit_sealing_lag_seconds)") == [1.0]
                rules = (await prometheus.get("/api/v1/rules")).json()["data"]["groups"][0]["rules"]
        assert [rule for rule in rules if rule["health"] == "err"] == []


def scrape_config(port: int) -> dict[str, Any]:
    """The deployed configuration, with another address and a shorter interval."""
    config: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text())
    config["rule_files"] = [str(ALERTS)]
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    (job,) = config["scrape_configs"]
    job["authorization"] = {"credentials": TOKEN}
    job["static_configs"] = [{"targets": [f"{LOOPBACK}:{port}"]}]
    return config


async def value_of(prometheus: httpx2.AsyncClient, query: str) -> list[float]:
    response = await prometheus.post("/api/v1/query", data={"query": query})
    body = response.json()
    assert body["status"] == "success", (query, body)
    return [float(sample["value"][1]) for sample in body["data"]["result"]]
