"""Metrics in the text format of Prometheus. Imported by the first scrape: few processes are asked."""

from collections.abc import Iterator
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from gatehouse.web.http.metrics import BUCKETS, Figure, Metrics

MEDIA_TYPE: Final = CONTENT_TYPE_LATEST
BOUNDS: Final = (*map(floatToGoString, BUCKETS), "+Inf")


class MetricFamilies(Collector):
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "gatehouse_requests", "Completed requests.", labels=("endpoint", "method", "status")
        )
        for labels, total in self._metrics.requests().items():
            requests.add_metric(labels, total)
        seconds = HistogramMetricFamily(
            "gatehouse_request_seconds", "Time from request to end of response.", labels=("endpoint",)
        )
        for name, durations in self._metrics.durations.items():
            seconds.add_metric((name,), list(zip(BOUNDS, durations.cumulative(), strict=True)), durations.total)
        yield from (requests, seconds)
        yield from map(family_of, self._metrics.figures)


def family_of(figure: Figure) -> Metric:
    family = (CounterMetricFamily if figure.counts else GaugeMetricFamily)(
        figure.name, figure.help, labels=figure.labels
    )
    for labels, value in figure.read().items():
        family.add_metric(labels, value)
    return family


def registry_of(metrics: Metrics) -> CollectorRegistry:
    """The registry of one process, with what the operating system counts for it."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(MetricFamilies(metrics))
    return registry


def metrics_text(metrics: Metrics) -> bytes:
    return generate_latest(registry_of(metrics))
