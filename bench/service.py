"""Where things are, and servers for the parts that are written in Python; the others use those of the tests."""
import contextlib
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("FCAP_BUILD_DIR", f"{ROOT}/build/release")
sys.path.append(f"{ROOT}/scripts")  # services.py and the kinds of servers


@contextlib.contextmanager
def running(server):
    """Stops the server at the end of the `with`."""
    server.start()
    try:
        yield server
    finally:
        server.stop()
