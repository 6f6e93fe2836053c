"""The server's own paths beside the pages, without what stands before every path."""

ENTER_PATH = "/inspector/enter"
# Alive, and able to write: what `make app` and the tests wait for.
HEALTH_PATH = "/inspector/health"
LIVE_PATH = "/inspector/live"
READY_PATH = "/inspector/ready"
METRICS_PATH = "/inspector/metrics"
