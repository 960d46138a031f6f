"""Real servers on loopback for development and tests, each in a directory of its own. The kinds are in the files *_server.py;
`service` is the command."""
import contextlib
import fcntl
import importlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys

from processes import freeze_tree, frozen, kill_tree, read, send, thaw_tree, wait_until

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
STOP_SECONDS = 60
KINDS = {"redis": ("redis_server", "Redis"), "redis-sentinel": ("redis_server", "RedisSentinel"),
         "redis-cluster": ("redis_cluster_server", "RedisCluster"),
         "kafka": ("kafka_server", "Kafka"), "postgres": ("postgres_server", "Postgres")}


class Failure(Exception):
    def __init__(self, text, code=1):
        super().__init__(text)
        self.code = code


def say(text):
    print(text, file=sys.stderr, flush=True)


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def lock(path):
    """Held until the file that is returned is closed."""
    file = open(path, "a", encoding="utf-8")
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def port_busy(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def choose_port(count, home):
    """The first of `count` consecutive free ports, below the range that the kernel gives to outgoing connections. A port
    stays reserved while the directory `home` exists, so a killed server finds it free again."""
    directory = f"/tmp/fcap-ports-{os.getuid()}"
    os.makedirs(directory, exist_ok=True)
    with lock(f"{directory}/lock"):
        for _ in range(200):
            ports = range(first := random.randrange(20000, 32000), first + count)
            if not any(os.path.isdir(read(f"{directory}/{port}")) or port_busy(port) for port in ports):
                for port in ports:
                    write(f"{directory}/{port}", home)
                return first
    raise Failure("no free port found")


class Server:
    """One instance in DIR/KIND: start, stop and faults. A kind defines prepare(), which writes what the server needs,
    command(), its command line, and ready(), whether it answers."""

    kind = ""
    needs = {}  # programs, and the packages that have them
    ports = 1  # consecutive ones
    patience = 60  # seconds until the first answer
    stop_signal = signal.SIGTERM
    address_name = "address"  # what `service` calls address(), where clients find it
    port_setting = "--port"  # what sets the port

    def __init__(self, directory, port=0, extra=None, owner=None):
        """Port 0 and extra arguments None stand for those of the last start, or any port and none."""
        self.home = f"{directory}/{self.kind}"
        self.log = f"{self.home}/server.log"
        self.given_port, self.given_extra = port, extra
        self.owner = owner or os.environ.get("FCAP_SERVICE_OWNER")
        self.nodes = [self]
        self.load()

    def load(self):
        """How it was started the last time; unless it still runs, what is given now comes first."""
        saved = json.loads(read(f"{self.home}/instance.json") or "{}")
        self.port, self.pid, self.extra = saved.get("port", 0), saved.get("pid"), saved.get("extra", [])
        if not self.running():
            self.port = self.given_port or self.port
            self.extra = self.extra if self.given_extra is None else self.given_extra

    def address(self):
        return f"127.0.0.1:{self.port}"

    def running(self):
        """Every process of a server has inherited this lock, so it is free once the last of them has ended."""
        with contextlib.suppress(FileNotFoundError), open(f"{self.home}/running", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def describe(self):
        return {"kind": self.kind, "port": self.port, "pid": self.pid, "dir": self.home, "log": self.log,
                self.address_name: self.address()}

    def failed(self, text):
        last = "\n".join(read(self.log).splitlines()[-25:])
        return Failure(f"{text}\n--- last lines of {self.log}\n{last}\n---")

    def launch(self, *command, **options):
        """Without what this process has inherited: a server would keep its caller's pipes open."""
        with open(self.log, "ab") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", start_new_session=True,
                                    **options)

    # Actions.

    def start(self):
        """Whether it had to be started."""
        os.makedirs(self.home, exist_ok=True)
        with lock(f"{self.home}/lock"):
            self.load()
            if self.running():
                if frozen(self.pid):
                    raise Failure(f"{self.kind} in {self.home} is frozen; thaw it first")
                self.wait_ready()
                return False
            for program, package in self.needs.items():
                if not shutil.which(program):
                    raise Failure(f"{program} is missing; run ./dev build once, or: apt-get install {package}")
            self.port = self.port or choose_port(self.ports, self.home)
            for port in filter(port_busy, range(self.port, self.port + self.ports)):
                raise Failure(f"{self.kind} cannot use 127.0.0.1:{port}: something else listens there (ss -tlnp shows what).\n"
                              f"       Set {self.port_setting} to another port, or stop the other program.", 4)
            self.prepare()
            self.spawn()
            try:
                self.wait_ready()
            except Failure:
                kill_tree(self.pid)
                raise
            return True

    def spawn(self):
        with lock(f"{self.home}/running") as held:
            self.pid = self.launch(*self.command(), pass_fds=[held.fileno()]).pid
        write(f"{self.home}/instance.json", json.dumps({"port": self.port, "pid": self.pid, "extra": self.extra}))
        if self.owner:
            self.launch(sys.executable, "-SE", f"{ROOT}/scripts/processes.py", str(self.pid), str(self.owner))

    def wait_ready(self):
        if wait_until(lambda: not self.running() or self.ready(), self.patience) and self.running():
            return
        problem = f"did not answer within {self.patience} s" if self.running() else "ended before it answered"
        raise self.failed(f"{self.kind} on port {self.port} {problem}.")

    def stop(self):
        """That nothing runs is success."""
        if self.running():
            send(self.stop_signal, self.pid)
            thaw_tree(self.pid)
            if not wait_until(lambda: not self.running(), STOP_SECONDS):
                say(f"warning: {self.kind} on port {self.port} did not stop within {STOP_SECONDS} s; killed")
                self.kill()

    def kill(self):
        if self.running():
            kill_tree(self.pid)
            # Its first thread may be gone long before the last one has closed the ports.
            if not wait_until(lambda: not self.running() and not any(map(port_busy, range(self.port, self.port + self.ports))), 60):
                raise Failure(f"{self.kind} (pid {self.pid}) survives SIGKILL")

    def freeze(self):
        freeze_tree(self.running_pid())

    def thaw(self):
        thaw_tree(self.running_pid())

    def running_pid(self):
        if not self.running():
            raise Failure(f"{self.kind} in {self.home} is not running", 3)
        return self.pid

    def state(self):
        if not self.running():
            return "stopped"
        return "frozen" if frozen(self.pid) else "running" if self.ready() else "not-answering"


class Group(Server):
    """Servers that start and stop together: those in `members`. Others may stand behind them in `nodes`. A kind may define
    form(): what is to be done, or waited for, once all of them run."""

    def start(self):
        """If one of them does not start, those that were started for it are stopped again."""
        self.started = []
        try:
            for node in self.members:
                if node.start():
                    self.started.append(node)
            self.form()
        except BaseException:
            self.stop_started()
            raise
        return bool(self.started)

    def stop_started(self):
        while self.started:
            self.started.pop().stop()

    def stop(self):
        for node in reversed(self.nodes):
            node.stop()

    def state(self):
        states = {node.state() for node in self.members}
        return states.pop() if len(states) == 1 else "incomplete"


def make(kind, *arguments, **options):
    file, name = KINDS[kind]
    return getattr(importlib.import_module(file), name)(*arguments, **options)
