"""Real servers on loopback for development and tests, each in a directory of its own: README.md describes the command
`scripts/service`, which is main() here. The kinds are in the files *_server.py."""
import argparse
import fcntl
import importlib
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys

from processes import freeze_tree, frozen, kill_tree, read, send, thaw_tree, wait_until

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
STOP_SECONDS = 15
KINDS = {"redis": ("redis_server", "Redis"), "redis-cluster": ("redis_server", "RedisCluster"),
         "redis-sentinel": ("redis_server", "RedisSentinel"), "kafka": ("kafka_server", "Kafka"),
         "postgres": ("postgres_server", "Postgres")}


class Failure(Exception):
    def __init__(self, text, code=1):
        super().__init__(text)
        self.code = code


def say(text):
    print(text, file=sys.stderr, flush=True)


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def require(program, package):
    if found := shutil.which(program):
        return found
    raise Failure(f"{program} is missing; run ./dev build once, or: apt-get install {package}")


def lock(path):
    """Held until the file that is returned is closed."""
    file = open(path, "a", encoding="utf-8")  # pylint: disable=consider-using-with
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
    command(), its command line, ready(), whether it answers, and address(), where clients find it, printed as address_name."""

    kind = ""
    address_name = "address"
    ports = 1
    patience = 60  # seconds until the first answer
    stop_signal = signal.SIGTERM
    port_setting = "--port"  # what sets the port

    def __init__(self, directory, port=0, extra=None, owner=None):
        """Port 0 and extra arguments None stand for those of the last start, or any port and none."""
        self.home = f"{directory}/{self.kind}"
        self.log = f"{self.home}/server.log"
        self.wanted_port, self.given_extra = port, extra
        self.owner = owner or os.environ.get("FCAP_SERVICE_OWNER")
        self.load()

    def load(self):
        saved = json.loads(read(f"{self.home}/instance.json") or "{}")
        self.port, self.pid, self.extra = (saved.get(name, none) for name, none in (("port", 0), ("pid", None), ("extra", [])))

    def running(self):
        """Every process of a server has inherited this lock, so it is free once the last of them has ended."""
        try:
            with open(f"{self.home}/running", encoding="utf-8") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return False
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True

    def describe(self):
        return {"kind": self.kind, "port": self.port, "pid": self.pid, "dir": self.home, "log": self.log,
                self.address_name: self.address()}

    def failed(self, text):
        last = "\n".join(read(self.log).splitlines()[-25:])
        return Failure(f"{text}\n--- last lines of {self.log}\n{last}\n---")

    def logged(self, *command):
        """Whether a command succeeds whose output belongs into the server's log."""
        with open(self.log, "ab") as log:
            return subprocess.call(command, cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log) == 0

    # Actions.

    def start(self):
        """Whether it had to be started."""
        os.makedirs(self.home, exist_ok=True)
        with lock(f"{self.home}/lock"):
            self.load()
            if self.running():
                if self.wanted_port not in (0, self.port):
                    raise Failure(f"{self.kind} in {self.home} already runs on port {self.port}; "
                                  f"stop it first to move it to {self.wanted_port}")
                if frozen(self.pid):
                    raise Failure(f"{self.kind} in {self.home} is frozen; thaw it first")
                self.wait_ready()
                return False
            if self.given_extra is not None:
                self.extra = self.given_extra
            self.port = self.wanted_port or self.port or choose_port(self.ports, self.home)
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
        # Without what this process has inherited: a server would keep its caller's pipes open.
        with open(self.log, "ab") as log, lock(f"{self.home}/running") as held:
            self.pid = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
                                        start_new_session=True, pass_fds=[held.fileno()]).pid
            write(f"{self.home}/instance.json", json.dumps({"port": self.port, "pid": self.pid, "extra": self.extra}))
            if self.owner:
                subprocess.Popen([sys.executable, "-SE", f"{ROOT}/scripts/processes.py", "--watch", str(self.pid), self.owner],
                                 stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", start_new_session=True)

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
            if not wait_until(lambda: not self.running(), 60):
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


def make(kind, *arguments, **options):
    file, name = KINDS[kind]
    return getattr(importlib.import_module(file), name)(*arguments, **options)


def number(low, high, pattern=r"\d+"):
    """For argparse: the text of a number in this range."""
    def parsed(text):
        if not re.fullmatch(pattern, text, re.ASCII) or not low <= float(text) <= high:
            raise argparse.ArgumentTypeError(f'"{text}" is not a number from {low} to {high}')
        return text
    return parsed


def parse(arguments):
    split = arguments.index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser(
        prog="scripts/service", allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="scripts/service KIND ACTION --dir DIR [options] [-- server arguments]",
        description="Starts, stops and disturbs one real server of its own (scripts/README.md).\n\n"
        "What stands behind -- is handed to the server (redis.conf options, postgres options, key=value for\n"
        "server.properties) and kept for later starts until others are given.",
        epilog="Prints key=value lines (kind, port, pid, dir, log, started=yes|no, and address, brokers or conninfo).\n"
        "Exit code: 0 done, 1 failed, 2 wrong use, 3 not running, 4 port taken.")
    add = parser.add_argument
    add("kind", choices=KINDS)
    add("action", choices=["start", "stop", "kill", "freeze", "thaw", "status", "create-topic"])
    add("words", nargs="*", metavar="NAME PARTITIONS [key=value…]", help="of kafka create-topic")
    add("--dir", required=True, type=os.path.abspath, help="everything of the server is kept in DIR/KIND")
    add("--port", type=number(0, 65530), default="0", help="0: the port used last time in DIR, or any free one")
    add("--owner", metavar="PID", type=number(1, 2**31),
        help="the server is killed when this process ends, however it ends (default: $FCAP_SERVICE_OWNER)")
    add("--node", type=number(0, 5), help="redis-cluster, redis-sentinel: only this node (README.md)")
    given = parser.parse_intermixed_args(arguments[:split])
    given.arguments = arguments[split + 1:] if split < len(arguments) else None
    topic = given.words[1:2] and given.words[1].isdigit() and all("=" in word for word in given.words[2:])
    if topic if given.action != "create-topic" else given.kind != "kafka" or not topic:
        parser.error("only kafka create-topic takes NAME PARTITIONS [key=value…]")
    return given


def tell(facts):
    print("\n".join(f"{name}={value}" for name, value in facts.items()))


def act(given):
    server = make(given.kind, given.dir, int(given.port), given.arguments, given.owner)
    if given.node is not None:
        server = server.nodes[int(given.node)]
    servers = getattr(server, "nodes", [server])
    if given.action == "start":
        started = server.start()
        tell({**server.describe(), "started": "yes" if started else "no"})
    elif given.action == "create-topic":
        tell({"created": "yes" if server.create_topic(*given.words) else "no"})
    elif given.action == "status":
        states = [one.state() for one in servers]
        for one, state in zip(servers, states):
            tell({"state": state, **one.describe()})
        return 3 if "stopped" in states else 0
    else:
        for one in reversed(servers):
            getattr(one, given.action)()
    return 0


def main(arguments):
    try:
        return act(parse(arguments))
    except Failure as failure:
        say(f"error: {failure}")
        return failure.code
