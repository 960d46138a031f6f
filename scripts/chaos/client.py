"""A process that makes the calls of one Checker (tests/chaos/checks.cc), and how late it answers."""
import itertools
import subprocess
import threading

LATE_US = 1000  # beyond the deadline


class Client:
    """`answered` is called with what was asked and the answer's words, the reason first, on a thread of the client's own."""

    def __init__(self, world, name, url, threads, deadline_ms, problem, answered):
        self.name, self.problem, self.answered = name, problem, answered
        self.numbers, self.pending, self.lock = itertools.count(), {}, threading.Lock()
        self.late, self.timers_late, self.timers, self.calls = [], [], 0, 0
        self.log = open(f"{world.directory}/{name}.log", "wb")
        self.process = subprocess.Popen(
            [f"{world.build}/tests/chaos/fcap-chaos-checks", url, str(threads), str(deadline_ms), world.postgres.address()],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def running(self):
        return self.process.poll() is None

    def put(self, asked, words):
        """False: the process has ended."""
        number = next(self.numbers)
        self.pending[number] = asked
        try:
            with self.lock:
                self.process.stdin.write(f"{number} {words}\n")
                self.process.stdin.flush()
        except (OSError, ValueError):
            return False
        return True

    def read(self):
        for line in self.process.stdout:
            first, late, *words = line.split()
            if first == "timer":
                self.timers += 1
                if int(late) > LATE_US:
                    self.timers_late.append(int(late))
                continue
            self.calls += 1
            if int(late) > LATE_US:
                self.late.append(int(late))
            self.answered(self.pending.pop(int(first)), words)

    def too_late(self):
        """Which answers were later than a thread that only waits may be on this machine. Empty: none."""
        allowed = 3 * len(self.timers_late) / max(1, self.timers) + 0.005
        share = len(self.late) / max(1, self.calls)
        longest = max(self.late, default=0) / 1000
        waited = max(self.timers_late, default=0) / 1000
        found = []
        if share > allowed:
            found.append(f"{self.name}: {100 * share:.2f} % of the answers were more than 1 ms beyond their deadline; of the threads "
                         f"that only wait {100 * len(self.timers_late) / max(1, self.timers):.2f} %")
        if longest > 2 * waited + 250:
            found.append(f"{self.name}: an answer was {longest:.0f} ms beyond its deadline; no thread that only waits was more than "
                         f"{waited:.0f} ms late")
        return found

    def resident_mb(self):
        with open(f"/proc/{self.process.pid}/statm", encoding="utf-8") as file:
            return int(file.read().split()[1]) * 4096 / 1e6

    def stop(self):
        """Every question must have been answered by then."""
        if not self.running():
            self.problem(f"{self.name} has ended with {self.process.returncode} (see {self.log.name})")
            return
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.problem(f"{self.name} did not end within 30 s")
        self.reader.join(30)
        if self.pending:
            self.problem(f"{self.name} never answered {len(self.pending)} calls")
        self.log.close()
