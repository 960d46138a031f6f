"""Processes, and runs that leave none behind. As a program, processes.py PID OWNER kills a process when its owner has ended,
however it ended."""
import contextlib
import ctypes
import glob
import os
import select
import signal
import sys
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def wait_until(condition, seconds):
    """Whether the condition came true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.005)
    return True


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def state(pid):
    """As /proc/PID/stat has it behind the name: "T" stopped, "Z" ended but not waited for; "" if there is no such process."""
    return read(f"/proc/{pid}/stat").rpartition(") ")[2][:1]


def frozen(pid):
    return state(pid) == "T"


def descendants(pid):
    children = [int(child) for file in glob.glob(f"/proc/{pid}/task/*/children") for child in read(file).split()]
    return children + [found for child in children for found in descendants(child)]


def send(number, *pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def freeze_tree(pid):
    """Stops the parent first, so that it starts no child meanwhile. Returns once the stop has taken effect."""
    send(signal.SIGSTOP, pid)
    wait_until(lambda: frozen(pid), 1)
    send(signal.SIGSTOP, *descendants(pid))


def thaw_tree(pid):
    send(signal.SIGCONT, *descendants(pid), pid)


def kill_tree(pid):
    """Does not wait."""
    send(signal.SIGSTOP, pid)
    send(signal.SIGKILL, pid, *descendants(pid))


def on_ending_signals(action):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, action)


def exit_on_signals():
    """Whoever interrupts this process gets an exception (SystemExit), so that `with` and `finally` clean up."""
    on_ending_signals(lambda number, _: sys.exit(128 + number))


def ignore_signals():
    """For the clean-up itself."""
    on_ending_signals(signal.SIG_IGN)


def contained(action):
    """Runs it in a child and gives its exit code. This process adopts whatever loses its parent meanwhile, servers with
    sessions of their own included, and ends what is left at the end."""
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.environ["FCAP_SERVICE_OWNER"] = str(os.getpid())
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        exit_on_signals()
        sys.exit(action())
    on_ending_signals(lambda *_: send(signal.SIGTERM, child))
    while (ended := os.wait())[0] != child:
        pass
    end_children()
    return os.waitstatus_to_exitcode(ended[1])


def end_children():
    """Politely, and after some seconds for good."""
    def none_left():
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            return False
        except ChildProcessError:
            return True

    for number, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
        send(number, *descendants(os.getpid()))
        send(signal.SIGCONT, *descendants(os.getpid()))
        if wait_until(none_left, patience):
            return


def survivors():
    """What the child of contained() has left running so far."""
    return [pid for pid in descendants(os.getppid()) if pid != os.getpid() and state(pid) != "Z"]


def watch(pid, owner):
    with contextlib.suppress(ProcessLookupError):  # one of them has ended already
        server, owners = os.pidfd_open(pid), os.pidfd_open(owner)
        if server in select.select([server, owners], [], [])[0]:
            return
    kill_tree(pid)


if __name__ == "__main__":
    watch(*map(int, sys.argv[1:]))
