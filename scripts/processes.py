#!/usr/bin/python3 -E
"""Processes by identity, and runs that leave none behind. As a program:
processes.py COMMAND [ARGUMENTS] runs the command and ends whatever it has left running;
processes.py --watch PID TICKS OWNER kills a process when its owner has ended, however it ended."""
import os
import select
import signal
import sys
import time


def _stat(pid):
    """The fields behind the name in /proc/PID/stat; None if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(") ")[2].split()
    except OSError:
        return None


def start_ticks(pid):
    """When a live process started, in clock ticks since boot: with its pid this names it for good. None for a missing
    one and for a zombie; a killed process whose first thread is a zombie may still hold its ports by the others."""
    fields = _stat(pid)
    if not fields or (fields[0] in "ZX" and int(fields[17]) <= 1):
        return None
    return fields[19]


def alive(pid, ticks):
    return pid is not None and ticks is not None and start_ticks(pid) == ticks


def frozen(pid):
    fields = _stat(pid)
    return bool(fields) and fields[0] == "T"


def send(pid, number):
    try:
        os.kill(int(pid), number)
    except ProcessLookupError:
        return False
    return True


def _children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return file.read().split()
    except OSError:
        return []


def freeze_tree(pid):
    """Stops the parent first, so that it starts no child meanwhile. Returns once the stop has taken effect."""
    send(pid, signal.SIGSTOP)
    wait_until(lambda: frozen(pid), 1)
    for child in _children(pid):
        send(child, signal.SIGSTOP)


def thaw_tree(pid):
    for child in _children(pid):
        send(child, signal.SIGCONT)
    send(pid, signal.SIGCONT)


def kill_tree(pid):
    """SIGKILL for a process and its children. Does not wait."""
    if send(pid, signal.SIGSTOP):
        for process in [pid, *_children(pid)]:
            send(process, signal.SIGKILL)


def wait_until(condition, seconds):
    """Whether the condition came true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.005)
    return True


ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def exit_on_signals():
    """Whoever interrupts this process gets an exception (SystemExit), so that `with` and `finally` clean up."""
    for number in ENDING_SIGNALS:
        signal.signal(number, lambda number, _: sys.exit(128 + number))


def ignore_signals():
    """For the clean-up itself."""
    for number in ENDING_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


class MarkedRun:
    """Everything that a run starts inherits its mark in the environment, whatever session or parent it ends up with, so
    the run can find and end what it would otherwise leave behind. A run within a run carries both marks.

    Signals end the run with an exception (exit_on_signals)."""

    def __enter__(self):
        own = f"{os.getpid()}-{start_ticks(os.getpid())}"
        outer = os.environ.get("FCAP_RUN_MARK")
        os.environ["FCAP_RUN_MARK"] = f"{outer},{own}" if outer else own
        os.environ["FCAP_SERVICE_OWNER"] = str(os.getpid())
        import re  # only here: a server's start waits for each import
        self._pattern = re.compile(rb"(?:^|\0)FCAP_RUN_MARK=(?:[^\0]*,)?%s(?:,|\0|$)" % own.encode())
        exit_on_signals()
        return self

    def __exit__(self, *_):
        ignore_signals()
        self.end()

    def processes(self):
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    # This process shows the environment from before the mark.
                    if self._pattern.search(file.read()) and start_ticks(name):
                        found.append(int(name))
            except OSError:
                pass
        return found

    def end(self, seconds=5):
        """Ends what is left of this run: politely, and after some seconds for good."""
        for number, patience in ((signal.SIGTERM, seconds), (signal.SIGKILL, 1)):
            for pid in self.processes():
                send(pid, number)
                send(pid, signal.SIGCONT)
            if wait_until(lambda: not self.processes(), patience):
                return


def watch(pid, ticks, owner):
    """A run that ends all its processes (MarkedRun) finds this watch rather than a server that has overwritten its
    environment, as Redis does; the watch passes the end on."""
    exit_on_signals()
    ends = select.poll()
    try:
        for process in (pid, owner):
            ends.register(os.pidfd_open(process), select.POLLIN)
        ends.poll()
    except ProcessLookupError:
        pass  # one of them has ended already
    finally:
        if alive(pid, ticks):
            kill_tree(pid)


if __name__ == "__main__":
    if sys.argv[1] == "--watch":
        sys.exit(watch(int(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
    with MarkedRun():
        import subprocess
        sys.exit(subprocess.Popen(sys.argv[1:]).wait())
