"""PostgreSQL for services.py: Debian's packaged server in a cluster of its own, with a database fcap, without passwords and
without fsync: for development and tests, never for data that matters."""
import contextlib
import glob
import os
import shutil
import signal
import subprocess

from processes import read
from services import Failure, Server

SETTINGS = ("listen_addresses=127.0.0.1 unix_socket_directories= fsync=off synchronous_commit=off full_page_writes=off "
            "shared_buffers=32MB max_connections=60 jit=off dynamic_shared_memory_type=mmap").split()
CREATE = "SELECT 'CREATE DATABASE fcap' WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'fcap') \\gexec\n"


class Postgres(Server):
    kind, address_name = "postgres", "conninfo"
    needs = {"psql": "postgresql-client"}
    stop_signal = signal.SIGINT  # "fast": open sessions are ended, then an orderly shutdown

    def prepare(self):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
        if not found:
            raise Failure("PostgreSQL's server is missing; run ./dev build once, or: apt-get install postgresql")
        self.binaries = os.path.dirname(found[-1])
        self.account = self.as_account()
        data = f"{self.home}/data"
        # What a killed server leaves behind: its pid is known to be dead here.
        with contextlib.suppress(FileNotFoundError):
            os.remove(f"{data}/postmaster.pid")
        if os.path.exists(f"{data}/PG_VERSION"):
            return
        shutil.rmtree(data, ignore_errors=True)
        os.mkdir(data, 0o700)
        if os.geteuid() == 0:
            shutil.chown(data, "postgres", "postgres")
        if self.launch(*self.account, f"{self.binaries}/initdb", "-D", data, "-U", "postgres", "--auth=trust", "--encoding=UTF8",
                       "--locale=C.UTF-8", "--no-sync", "--no-instructions").wait() != 0:
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
        return [*self.account, f"{self.binaries}/postgres", "-D", f"{self.home}/data", "-p", str(self.port),
                *(word for setting in SETTINGS for word in ("-c", setting)), *self.extra]

    def kill(self):
        """A killed server leaves its System V memory behind, of which a kernel has 4,096 pieces for everybody."""
        told = read(f"{self.home}/data/postmaster.pid").splitlines()
        super().kill()
        if len(told) > 6 and told[6]:
            subprocess.run(["ipcrm", "-m", told[6].split()[-1]], capture_output=True, check=False)

    def ready(self):
        lines = read(f"{self.home}/data/postmaster.pid").splitlines()
        return len(lines) > 7 and lines[7].startswith("ready") and subprocess.run(
            ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres"],
            input=CREATE, text=True, env={**os.environ, "PGCONNECT_TIMEOUT": "2", "PGOPTIONS": ""}, capture_output=True,
            check=False).returncode == 0

    def address(self):
        return f"host=127.0.0.1 port={self.port} user=postgres dbname=fcap"
