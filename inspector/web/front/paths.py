"""The server's own paths beside the pages, without what stands before every path."""

ENTER_PATH = "/inspector/enter"
UPLOAD_PATH = "/inspector/upload"
# Slices of a file that is being uploaded.
SLICES_PATH = "/inspector/slices"
DOWNLOAD_PATH = "/inspector/exports"
STATIC_PATH = "/inspector/static"
# Alive, and able to write: what `make app` and the tests wait for.
HEALTH_PATH = "/inspector/health"
LIVE_PATH = "/inspector/live"
READY_PATH = "/inspector/ready"
METRICS_PATH = "/inspector/metrics"


def path_below(base: str, path: str) -> str:
    """A request's path from "/" on. base: what stands before every path, "" or "/base"."""
    return path.removeprefix(base) or "/" if path == base or path.startswith(f"{base}/") else path
