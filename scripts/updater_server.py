"""fcap-updater for services.py; its port serves /metrics and /readyz."""
import json
import time
import urllib.error
import urllib.request

from services import Server, write


def page(address, path):
    """What it answers, with a status of 503 as well: then the text says why."""
    try:
        with urllib.request.urlopen(f"http://{address}/{path}", timeout=3) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.read().decode()


class Shown:
    """What an updater shows at one moment."""

    def __init__(self, address):
        self.at = time.time()
        self.why = page(address, "readyz")
        # By name and labels; a sample that is missing is not 0.
        self.samples = dict(line.rsplit(" ", 1) for line in page(address, "metrics").splitlines() if not line.startswith("#"))

    def value(self, name, label=""):
        """The sum over labels, or over those with this one; None: there is no sample."""
        name = name if name.startswith("process") else f"fcap_updater_{name}"
        found = [float(value) for key, value in self.samples.items() if key.partition("{")[0] == name and label in key]
        return sum(found) if found else None


class Updater(Server):
    kind = "updater"

    def __init__(self, directory, program, **options):
        super().__init__(directory, **options)
        self.program = program
        self.settings = {}  # its configuration, but for http.port

    def prepare(self):
        write(f"{self.home}/updater.json", json.dumps({**self.settings, "http": {"port": self.port}}, indent=2))

    def command(self):
        return [self.program, "run", "--config", f"{self.home}/updater.json"]

    def ready(self):
        try:
            return urllib.request.urlopen(f"http://{self.address()}/readyz", timeout=2).status == 200
        except OSError:
            return False
