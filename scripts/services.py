"""Real servers on loopback for development and tests, each in a directory of its own: README.md describes the command
`scripts/service`, which is main() here. Standard library only."""
import argparse
import copy
import fcntl
import glob
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys

from processes import alive, freeze_tree, frozen, kill_tree, send, start_ticks, thaw_tree, wait_until

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
STOP_SECONDS = 15


class Failure(Exception):
    def __init__(self, text="", code=1):
        super().__init__(text)
        self.code = code


def wrong_use(text):
    return Failure(text, 2)


def say(text):
    print(text, file=sys.stderr, flush=True)


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def require(program, package):
    if found := shutil.which(program):
        return found
    raise Failure(f"{program} is missing; run ./dev build once, or: apt-get install {package}")


def lock(path, seconds=120):
    """Held until the file that is returned is closed, or this process ends."""
    file = open(path, "a", encoding="utf-8")  # pylint: disable=consider-using-with

    def locked():
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            return False

    if not wait_until(locked, seconds):
        raise Failure(f"another command has held {path} for {seconds} s")
    return file


def port_busy(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def choose_port(count, home):
    """The first of `count` consecutive free ports, below the range that the kernel gives to outgoing connections. A port
    stays reserved while the directory `home` exists, so a killed server finds it free again."""
    directory = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"fcap-ports-{os.getuid()}")
    os.makedirs(directory, exist_ok=True)

    def reserved(port):
        holder = read(f"{directory}/{port}")
        return holder not in ("", home) and os.path.isdir(holder)

    with lock(f"{directory}/lock"):
        for _ in range(200):
            ports = range(first := random.randrange(20000, 32000), first + count)
            if not any(reserved(port) or port_busy(port) for port in ports):
                for port in ports:
                    write(f"{directory}/{port}", home)
                return first
    raise Failure("no free port found")


class Server:
    """One instance: its state on disk (port, pid, start time), start, stop and faults. A kind defines prepare(), which writes
    what the server needs, command(), its command line, ready(), whether it answers, started(), what is done once it does,
    and address(), the last line that is printed."""

    kind = ""
    ports = 1
    patience = 10  # seconds until the first answer
    stop_signal = signal.SIGTERM

    def __init__(self, options):
        self.options = options
        self.home = os.path.join(options.dir, self.kind)
        self.log = f"{self.home}/server.log"
        self.extra = options.extra or []
        self.load()

    def started(self): ...

    def load(self):
        saved = dict(line.split("=", 1) for line in read(f"{self.home}/instance").splitlines())
        self.port, self.pid = (int(saved[name]) if name in saved else None for name in ("port", "pid"))
        self.ticks = saved.get("ticks")

    def save(self):
        write(f"{self.home}/instance.new", f"port={self.port}\npid={self.pid}\nticks={self.ticks}\n")
        os.replace(f"{self.home}/instance.new", f"{self.home}/instance")

    def running(self):
        return alive(self.pid, self.ticks)

    def describe(self):
        return f"kind={self.kind}\nport={self.port}\npid={self.pid}\ndir={self.home}\nlog={self.log}\n{self.address()}"

    def log_tail(self):
        return "\n".join(read(self.log).splitlines()[-25:])

    def failed(self, text):
        say(f"error: {text}\n--- last lines of {self.log}\n{self.log_tail()}\n---")
        return Failure()

    def logged(self, *command):
        """Whether a command succeeds whose output belongs into the server's log."""
        with open(self.log, "ab") as log:
            return subprocess.run(command, cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False).returncode == 0

    # Actions.

    def start(self):
        began = self.ensure_running()
        print(f"{self.describe()}\nstarted={'yes' if began else 'no'}")

    def ensure_running(self):
        """Whether it had to be started."""
        os.makedirs(self.home, exist_ok=True)
        with lock(f"{self.home}/lock"):
            self.load()
            if was_running := self.running():
                self.check_running()
            else:
                self.start_server()
            self.started()
            if self.options.owner and not was_running:
                # A process of its own, without what this one has inherited.
                self.spawn([sys.executable, "-SE", f"{ROOT}/scripts/processes.py", "--watch", str(self.pid), self.ticks,
                            str(self.options.owner)])
            return not was_running

    def check_running(self):
        if self.options.port not in (None, 0, self.port):
            raise Failure(f"{self.kind} in {self.options.dir} already runs on port {self.port}; "
                          f"stop it first to move it to {self.options.port}")
        if frozen(self.pid):
            raise Failure(f"{self.kind} in {self.options.dir} is frozen; thaw it first")
        if problem := self.wait_ready():
            raise self.failed(problem)

    def start_server(self):
        if self.options.extra is None:
            self.extra = read(f"{self.home}/extra").split("\0")[:-1]
        for attempt in (1, 2, 3):
            chosen = self.settle_port()
            self.refuse_busy_port()
            self.prepare()
            self.pid = self.spawn(self.command())
            self.ticks = start_ticks(self.pid) or "0"
            self.save()
            problem = self.wait_ready()
            if not problem:
                write(f"{self.home}/extra", "".join(f"{word}\0" for word in self.extra))
                return
            kill_tree(self.pid)
            # A port that was free a moment ago may have been taken meanwhile; only one that we chose is chosen again.
            if not chosen or attempt == 3 or "address already in use" not in self.log_tail().lower():
                raise self.failed(problem)
            os.remove(f"{self.home}/instance")
            self.port = None

    def settle_port(self):
        """The port that was asked for, or used last time, or (0) any free one. Whether it was chosen here."""
        if self.options.port:
            self.port = self.options.port
        elif self.port is None:
            if self.options.port is None:
                raise wrong_use(f"{self.kind} in {self.options.dir} has no port yet: give --port PORT (0: any free one)")
            self.port = choose_port(self.ports, self.home)
            return True
        return False

    def refuse_busy_port(self):
        for port in filter(port_busy, range(self.port, self.port + self.ports)):
            found = shutil.which("ss") and re.search(r"users:\(\((.*?)\)\)", subprocess.run(
                ["ss", "-Hltnp", f"sport = :{port}"], capture_output=True, text=True, check=False).stdout)
            change = f"Set {self.options.port_env} to another port" if self.options.port_env else "Give another --port"
            raise Failure(f"{self.kind} cannot use 127.0.0.1:{port}: something else listens there"
                          f"{f' ({found[1]})' if found else ''}.\n       {change}, or stop the other program.", 4)

    def spawn(self, command):
        # Without what this process has inherited: a server would keep its caller's pipes open.
        with open(self.log, "ab") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/").pid

    def wait_ready(self):
        """None once the server answers, or why it does not."""
        if not wait_until(lambda: not self.running() or self.ready(), self.patience):
            return f"{self.kind} on port {self.port} did not answer within {self.patience} s."
        return None if self.running() else f"{self.kind} on port {self.port} ended before it answered."

    def stop(self):
        self.end(orderly=True)

    def kill(self):
        self.end(orderly=False)

    def end(self, orderly):
        """That nothing runs is success."""
        if not self.running():
            return
        with lock(f"{self.home}/lock"):
            if orderly:
                send(self.pid, self.stop_signal)
                thaw_tree(self.pid)
                if wait_until(lambda: not self.running(), STOP_SECONDS):
                    return
                say(f"warning: {self.kind} on port {self.port} did not stop within {STOP_SECONDS} s; killed")
            kill_tree(self.pid)
            if not wait_until(lambda: not self.running(), 10):
                raise Failure(f"{self.kind} (pid {self.pid}) survives SIGKILL")

    def must_run(self):
        if not self.running():
            raise Failure(f"{self.kind} in {self.options.dir} is not running", 3)

    def freeze(self):
        self.must_run()
        freeze_tree(self.pid)

    def thaw(self):
        self.must_run()
        thaw_tree(self.pid)

    def status(self):
        if not self.running():
            print(f"kind={self.kind}\nstate=stopped\nport={self.port or ''}\ndir={self.home}")
            raise Failure(code=3)
        state = "frozen" if frozen(self.pid) else "running" if self.ready() else "not-answering"
        print(f"state={state}\n{self.describe()}")


class Redis(Server):
    """Without persistence unless the arguments behind -- ask for it; they come last, so they win."""

    kind = "redis"
    configuration = ""  # of the first redis.conf, where there shall be one: the server itself writes into it

    @property
    def pid_file(self):
        return f"{self.home}/data/redis.pid"

    def prepare(self):
        require("redis-server", "redis-server")
        os.makedirs(f"{self.home}/data", exist_ok=True)
        if os.path.exists(self.pid_file):
            os.remove(self.pid_file)
        if self.configuration and not os.path.exists(f"{self.home}/data/redis.conf"):
            write(f"{self.home}/data/redis.conf", self.configuration)

    def command(self):
        own = f"{self.home}/data/redis.conf"
        return ["redis-server", *([own] if os.path.exists(own) else []),
                *f"--bind 127.0.0.1 --port {self.port} --daemonize no --supervised no --appendonly no "
                "--tcp-backlog 128 --ignore-warnings ARM64-COW-BUG".split(), "--dir", f"{self.home}/data", "--pidfile",
                self.pid_file, "--logfile", "", "--save", "", *self.extra]

    def ask(self, *words):
        """A command that needs no quoting, and its reply; an error's begins with "-"."""
        with socket.create_connection(("127.0.0.1", self.port), 2) as connection, connection.makefile("rb") as replies:
            connection.sendall(" ".join(words).encode() + b"\r\n")
            line = replies.readline().decode().strip()
            return replies.read(int(line[1:])).decode() if line.startswith("$") else line

    def ready(self):
        # The pid file appears once our own server listens, so an answer cannot come from a stranger on that port.
        # "NOAUTH" is an answer as well: the server is up and asks for the password that it was given.
        try:
            return bool(read(self.pid_file)) and self.ask("PING").startswith(("+PONG", "-NOAUTH"))
        except OSError:
            return False

    def address(self):
        return f"address=127.0.0.1:{self.port}"


class RedisGroup:
    """Several instances of kind redis as one: node N is in DIR/KIND/node-N, on PORT + N. A kind defines nodes(), all of them,
    and form(), which starts them and gives what is printed about them."""

    kind, size, ports = "", 0, 0

    def __init__(self, options):
        self.options = options
        self.home = os.path.join(options.dir, self.kind)

    def node(self, number, port=None, extra=None):
        options = copy.copy(self.options)
        options.dir, options.port, options.extra = f"{self.home}/node-{number}", port, extra
        return Redis(options)

    def __getattr__(self, action):
        """On the chosen nodes, the last one first; the worst exit code counts."""
        def each():
            failures = []
            for number in reversed(range(self.size)) if self.options.node is None else [self.options.node]:
                try:
                    getattr(self.node(number), action)()
                except Failure as failure:
                    failures.append(failure)
            if failures:
                raise max(failures, key=lambda failure: failure.code)
        return each

    def start(self):
        if self.options.node is not None:
            self.node(self.options.node).start()
            return
        os.makedirs(self.home, exist_ok=True)
        with lock(f"{self.home}/lock"):
            port = self.options.port or self.node(0).port or choose_port(self.ports, self.home)
            nodes = self.nodes(port)
            self.form(nodes, starts := [])
        print(f"kind={self.kind}\nport={port}\ndir={self.home}\n{self.describe(nodes)}\nstarted={'yes' if any(starts) else 'no'}")


def addresses(nodes):
    return ",".join(f"127.0.0.1:{node.port}" for node in nodes)


class RedisCluster(RedisGroup):
    """Three masters; their cluster buses are on PORT + 3 to PORT + 5."""

    kind, size, ports = "redis-cluster", 3, 6

    def nodes(self, port):
        return [self.node(n, port + n, [
            *f"--cluster-enabled yes --cluster-port {port + 3 + n} --cluster-node-timeout 2000 --cluster-config-file "
            "nodes.conf".split(), *(self.options.extra or [])]) for n in range(3)]

    def form(self, nodes, starts):
        starts += [node.ensure_running() for node in nodes]
        if "cluster_slots_assigned:16384" not in nodes[0].ask("CLUSTER", "INFO"):
            port = nodes[0].port
            for n, (first, last) in enumerate(((0, 5460), (5461, 10922), (10923, 16383))):
                for command in (f"ADDSLOTSRANGE {first} {last}", f"SET-CONFIG-EPOCH {n + 1}",
                                f"MEET 127.0.0.1 {port} {port + 3}")[:3 if n else 2]:
                    if (reply := nodes[n].ask("CLUSTER", command)) != "+OK":
                        raise Failure(f"the cluster could not be created: CLUSTER {command}: {reply}")
        formed = ("cluster_state:ok", "cluster_known_nodes:3")
        if not wait_until(lambda: all(f in node.ask("CLUSTER", "INFO") for node in nodes for f in formed), 20):
            raise Failure("the cluster did not reach cluster_state:ok")

    def describe(self, nodes):
        return f"addresses={addresses(nodes)}"


class RedisSentinel(RedisGroup):
    """Node 0 is the first master, 1 and 2 are its replicas, 3 to 5 the sentinels, which call it "fcap". Arguments behind --
    go to the first three. Who is the master is in each node's redis.conf, which Sentinel keeps up to date."""

    kind, size, ports = "redis-sentinel", 6, 6

    def nodes(self, port):
        nodes = [self.node(n, port + n, ["--repl-diskless-sync-delay", "0", *(self.options.extra or [])]) for n in range(3)]
        nodes += [self.node(n, port + n, ["--sentinel"]) for n in range(3, 6)]
        for replica in nodes[1:3]:
            replica.configuration = f"replicaof 127.0.0.1 {port}\n"
        for sentinel in nodes[3:]:
            sentinel.configuration = (
                f"sentinel monitor fcap 127.0.0.1 {port} 2\nsentinel down-after-milliseconds fcap 1000\nsentinel failover-timeout "
                f"fcap 3000\nsentinel known-replica fcap 127.0.0.1 {port + 1}\nsentinel known-replica fcap 127.0.0.1 {port + 2}\n")
        nodes[0].configuration = "# Sentinel's changes follow.\n"
        return nodes

    def form(self, nodes, starts):
        starts += [node.ensure_running() for node in nodes]

        def formed():
            return (any("connected_slaves:2" in node.ask("INFO", "replication") for node in nodes[:3]) and
                    all("slaves=2,sentinels=3" in node.ask("INFO", "sentinel") for node in nodes[3:]))

        if not wait_until(formed, 60):
            raise Failure("the replicas and sentinels did not find their master and each other")

    def describe(self, nodes):
        return f"addresses={addresses(nodes[:3])}\nsentinels={addresses(nodes[3:])}\nurl=redis-sentinel://{addresses(nodes[3:])}/fcap"


class Postgres(Server):
    """Debian's packaged server in a cluster of its own, without passwords and without fsync: for development and tests,
    never for data that matters."""

    kind = "postgres"
    patience = 30
    stop_signal = signal.SIGINT  # "fast": open sessions are ended, then an orderly shutdown

    def prepare(self):
        require("psql", "postgresql-client")
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
        if not found:
            raise Failure("PostgreSQL's server is missing; run ./dev build once, or: apt-get install postgresql")
        self.binaries = os.path.dirname(found[-1])
        self.account = self.as_account()
        data = f"{self.home}/data"
        if os.path.exists(f"{data}/PG_VERSION"):
            # What a killed server leaves behind: its pid is known to be dead here.
            if os.path.exists(f"{data}/postmaster.pid"):
                os.remove(f"{data}/postmaster.pid")
            return
        shutil.rmtree(data, ignore_errors=True)
        os.mkdir(data, 0o700)
        if os.geteuid() == 0:
            shutil.chown(data, "postgres", "postgres")
        if not self.logged(*self.account, f"{self.binaries}/initdb", "-D", data, "-U", "postgres", "--auth=trust", "--encoding=UTF8",
                           "--locale=C.UTF-8", "--no-sync", "--no-instructions"):
            shutil.rmtree(data, ignore_errors=True)
            raise self.failed("initdb failed")

    def as_account(self):
        """PostgreSQL refuses to run as root. The extra capability lets the account reach a directory below, say, /root;
        it gives the account nothing but reading, and only in this server."""
        if os.geteuid() != 0:
            return []
        command = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]
        for more in ([], ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]):
            command += more
            # Not test -x: access(2) leaves the capability out of account.
            if subprocess.run([*command, "stat", f"{self.home}/."], capture_output=True, check=False).returncode == 0:
                return [*command, "--"]
        raise Failure(f"PostgreSQL must run as the account postgres, which cannot reach {self.home}; choose another directory")

    def command(self):
        settings = ("listen_addresses=127.0.0.1 unix_socket_directories= fsync=off synchronous_commit=off full_page_writes=off "
                    "shared_buffers=32MB max_connections=60 jit=off").split()
        return [*self.account, f"{self.binaries}/postgres", "-D", f"{self.home}/data", "-p", str(self.port),
                *(word for setting in settings for word in ("-c", setting)), *self.extra]

    def psql(self, database, statement):
        with open(self.log, "ab") as log:
            return subprocess.run(
                ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1",
                 f"host=127.0.0.1 port={self.port} user=postgres dbname={database}", "-c", statement],
                env={**os.environ, "PGCONNECT_TIMEOUT": "2", "PGOPTIONS": ""}, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=log, check=False).stdout.strip()

    def ready(self):
        lines = read(f"{self.home}/data/postmaster.pid").splitlines()
        return len(lines) > 7 and lines[7].startswith("ready") and self.psql("postgres", "SELECT 1") == b"1"

    def started(self):
        name = self.options.database
        if name and not re.fullmatch("[a-z_][a-z0-9_]*", name):
            raise wrong_use("--database: a name of a-z, 0-9 and _")
        if name and self.psql("postgres", f"SELECT 1 FROM pg_database WHERE datname = '{name}'") != b"1":
            self.psql("postgres", f"CREATE DATABASE {name}")

    def address(self):
        return f"conninfo=host=127.0.0.1 port={self.port} user=postgres dbname={self.options.database or 'postgres'}"


def kafka(options):
    import kafka_server  # the largest of the kinds: a file of its own, which needs this one
    return kafka_server.Kafka(options)


KINDS = {"redis": Redis, "redis-cluster": RedisCluster, "redis-sentinel": RedisSentinel, "kafka": kafka, "postgres": Postgres}


def number(low, high, pattern=r"\d+"):
    """For argparse: the text of a number in this range."""
    def parsed(text):
        if not re.fullmatch(pattern, text, re.ASCII) or not low <= float(text) <= high:
            raise argparse.ArgumentTypeError(f'"{text}" is not a number from {low} to {high}')
        return text
    return parsed


def parse(arguments):
    """An option that is not given is None."""
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
    add("words", nargs="*", metavar="NAME PARTITIONS [key=value…]", help="of create-topic (kafka)")
    add("--dir", required=True, type=os.path.abspath, help="everything of the server is kept in DIR/KIND")
    add("--port", type=number(0, 65530), help="0: any free port, printed as port=…; without it, the port used last time in DIR")
    add("--owner", metavar="PID", type=number(1, 2**31), default=os.environ.get("FCAP_SERVICE_OWNER") or None,
        help="the server is killed when this process ends, however it ends (default: $FCAP_SERVICE_OWNER)")
    add("--database", metavar="NAME", help="postgres: created if it does not exist")
    add("--node", type=number(0, 5), help="redis-cluster, redis-sentinel: only this node (README.md)")
    add("--port-env", metavar="NAME", help="the environment variable to name when the port is taken")
    options = parser.parse_intermixed_args(arguments[:split])
    options.extra = arguments[split + 1:] if split < len(arguments) else None
    options.port = None if options.port is None else int(options.port)
    if (options.action == "create-topic") != bool(options.words) or (options.words and options.kind != "kafka"):
        parser.error(f"{options.kind} {options.action} {' '.join(options.words)}: only kafka create-topic takes a name and partitions")
    return options


def main(arguments):
    try:
        options = parse(arguments)
        if options.action == "start":
            os.makedirs(options.dir, exist_ok=True)
        getattr(KINDS[options.kind](options), options.action.replace("-", "_"))()
        return 0
    except Failure as failure:
        if str(failure):
            sys.stdout.flush()
            say(f"error: {failure}")
        return failure.code
