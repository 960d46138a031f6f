"""fcap-updater for services.py; its port serves /metrics and /readyz."""
import json
import urllib.error
import urllib.request

from services import Server, write


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

    def page(self, path):
        """What it answers, with a status of 503 as well: then the text says why."""
        try:
            with urllib.request.urlopen(f"http://{self.address()}/{path}", timeout=5) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as refusal:
            return refusal.read().decode()

    def ready(self):
        try:
            return urllib.request.urlopen(f"http://{self.address()}/readyz", timeout=2).status == 200
        except OSError:
            return False
