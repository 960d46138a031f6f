"""Servers of the parts that are written in Python; the others use those of the tests."""
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("FCAP_BUILD_DIR", f"{ROOT}/build/release")


class Service:
    """A server of its own, which ends with this process and is stopped at the end of a `with`."""

    def __init__(self, kind, directory):
        self.kind, self.directory = kind, directory
        self.values = dict(line.split("=", 1) for line in self("start", "--port", "0", "--owner", str(os.getpid())).splitlines())

    def __call__(self, action, *arguments):
        return subprocess.run([f"{ROOT}/scripts/service", self.kind, action, *arguments, "--dir", self.directory],
                              stdout=subprocess.PIPE, text=True, check=True).stdout

    def __getitem__(self, name):
        return self.values[name]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self("stop")
