"""A Redis for an oracle that compares records or calls in one."""
import os
import shutil
import tempfile

from services import make


def over_redis(run):
    """The exit code of run(directory, server); 77, which ctest calls skipped, if there is no Redis and none is required."""
    if shutil.which("redis-server") is None and not os.environ.get("FCAP_REQUIRE_SERVICES"):
        print("skipped: there is no redis-server")
        return 77
    with tempfile.TemporaryDirectory() as directory:
        server = make("redis", directory)
        server.start()
        try:
            return run(directory, server)
        finally:
            server.stop()
