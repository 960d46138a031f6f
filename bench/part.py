"""What running a part takes: places, servers, and where a program runs. Redis has one core, what is measured has another; a
machine of one core has them share it."""
import json
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("FCAP_BUILD_DIR", f"{ROOT}/build/release")
SERVICE = f"{ROOT}/scripts/service"
CORES = os.cpu_count()


def start(kind, directory, *arguments):
    """A server of its own, which ends with this process; what scripts/service says of it."""
    lines = subprocess.run([SERVICE, kind, "start", "--dir", directory, "--port", "0", "--owner",
                            str(os.getpid()), *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout
    return dict(line.split("=", 1) for line in lines.splitlines())


def start_redis(directory):
    redis = start("redis", directory)
    if CORES > 1:
        subprocess.run(["taskset", "-apc", "0", redis["pid"]], stdout=subprocess.DEVNULL, check=True)
    return redis


def stop(kind, directory):
    subprocess.run([SERVICE, kind, "stop", "--dir", directory], capture_output=True, check=False)


def on_client_core(*command):
    return ["taskset", "-c", "1", *command] if CORES > 1 else list(command)


def measured(*command):
    """The JSON that a program prints on the client's core."""
    return json.loads(subprocess.run(on_client_core(*command), stdout=subprocess.PIPE, check=True).stdout)
