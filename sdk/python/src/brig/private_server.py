"""A private brigd: found, started, awaited and ended by the process that needs it.

Owns the search for the binary and the life of the process, one for each binary and shared
by all clients of this process. It can not outlive this process: its standard input is a
pipe that only this process holds, and it ends when that closes. Never touches a brigd that
somebody else started.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from .errors import BrigError

#: Longest path that a Unix socket can have, in bytes.
_SOCKET_PATH_BYTES = 107
#: How long brigd may take until it answers, in seconds.
_READY_S = 20.0
#: How long brigd may take to end in good order, in seconds.
_STOP_S = 5.0
#: How long a brigd that is there may take to answer, in seconds. Long: one that is only
#: slow, on a machine that is loaded, must not be taken for one that is gone.
_ANSWER_S = 20.0
#: How much of what brigd said last is kept, in characters.
_LOG_CHARS = 8 * 1024
#: What is this process's own affair with its service manager.
_NOT_INHERITED = frozenset(
    ["NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PID", "WATCHDOG_USEC", "WATCHDOG_PID", "JOURNAL_STREAM"]
)

_servers: dict[str, PrivateServer] = {}
_lock = threading.Lock()


def running(named: str | None) -> PrivateServer:
    """The brigd of this process, started when there is none. Blocks until it answers."""
    binary = _find_brigd(named)
    with _lock:
        server = _servers.get(binary)
        if server is not None and server.answers():
            return server
        if server is not None:
            server.stop()
        _servers[binary] = server = PrivateServer(binary)
        return server


def stop_all() -> None:
    """Ends what this process started."""
    with _lock:
        servers = list(_servers.values())
        _servers.clear()
    for server in servers:
        server.stop()


def _forget_in_child() -> None:
    """A forked child has copies of what it does not own: it must neither stop nor hold them."""
    global _lock
    _lock = threading.Lock()
    for server in _servers.values():
        server.disown()
    _servers.clear()


atexit.register(stop_all)
os.register_at_fork(after_in_child=_forget_in_child)


class PrivateServer:
    """A brigd of this process."""

    def __init__(self, binary: str) -> None:
        """Starts one and waits until it answers, or raises ``start_failed`` with what it said."""
        self.binary = binary
        self._folder = _make_folder()
        #: Path of its socket, in a folder that only this user can enter.
        self.socket = str(self._folder / "brig.sock")
        self._log = ""
        try:
            self._child = subprocess.Popen(
                [binary, "--socket", self.socket, "--exit-on-stdin-close"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env={name: value for name, value in os.environ.items() if name not in _NOT_INHERITED},
                # A Ctrl-C is for this process, which cancels and still wants the answers.
                start_new_session=True,
            )
        except OSError as fault:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise BrigError("start_failed", f"{binary} can not be started: {fault}") from fault
        self._listening = threading.Thread(target=self._listen, name="brig log", daemon=True)
        self._listening.start()
        try:
            self._await_answer()
        except BaseException:
            self.stop()
            raise

    def answers(self) -> bool:
        """Whether it runs and answers."""
        return self._child.poll() is None and _answers(self.socket)

    def stop(self) -> None:
        """Ends it in good order, or by force when that takes too long."""
        if self._child.stdin is not None:
            self._child.stdin.close()
        try:
            self._child.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._listening.join(_STOP_S)
        if self._child.stderr is not None and not self._listening.is_alive():
            self._child.stderr.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def disown(self) -> None:
        """Lets go of the pipe without ending anything."""
        if self._child.stdin is not None:
            self._child.stdin.close()
        # So that nothing waits for, or reaps, a process of somebody else.
        self._child.returncode = 0

    def _listen(self) -> None:
        if self._child.stderr is not None:
            for said in self._child.stderr:
                self._log = (self._log + said.decode(errors="replace"))[-_LOG_CHARS:]

    def _await_answer(self) -> None:
        deadline = time.monotonic() + _READY_S
        wait = 0.001
        while not _connects(self.socket):
            if self._child.poll() is not None:
                raise self._failed(f"ended before it was ready (exit status {self._child.returncode})")
            if time.monotonic() > deadline:
                raise self._failed(f"was not ready within {_READY_S} s")
            time.sleep(wait)
            wait = min(wait * 1.5, 0.02)

    def _failed(self, how: str) -> BrigError:
        if self._child.poll() is not None:
            # What it said last may still be on its way.
            self._listening.join(0.5)
        said = f"; it said:\n  {self._log.strip()}" if self._log.strip() else ""
        return BrigError("start_failed", f"{self.binary} was started, but {how}{said}")


def _connects(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except OSError:
            return False
        return True


def _answers(path: str) -> bool:
    """Whether a request is answered.

    A process that was killed may not have been missed yet, and its socket takes connections
    until the kernel has closed it: only an answer shows that somebody is there.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        # With a timeout of Python's own the socket does not block, and a full queue of
        # connections would be told at once: as if nobody were there.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(_ANSWER_S))
        try:
            probe.connect(path)
            probe.settimeout(_ANSWER_S)
            probe.sendall(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n')
            return probe.recv(1) != b""
        except OSError:
            return False


def _timeval(seconds: float) -> bytes:
    whole = int(seconds)
    return struct.pack("ll", whole, int((seconds - whole) * 1_000_000))


def _make_folder() -> Path:
    """A new folder, mode 0700, for a socket whose path is short enough."""
    usual = tempfile.gettempdir()
    fits = len(os.fsencode(os.path.join(usual, "brig-xxxxxxxx", "brig.sock"))) <= _SOCKET_PATH_BYTES
    return Path(tempfile.mkdtemp(prefix="brig-", dir=usual if fits else "/tmp"))


def _find_brigd(named: str | None) -> str:
    """The binary that is named here or in ``BRIGD``, else the first ``brigd`` on ``PATH``."""
    wanted = named or os.environ.get("BRIGD")
    if wanted:
        if os.path.isfile(wanted) and os.access(wanted, os.X_OK):
            return os.path.abspath(wanted)
        by = "the option brigd names" if named else "BRIGD names"
        raise BrigError("start_failed", f"{by} {wanted}, which is not an executable file")
    # Never from a relative folder of PATH, which is whatever the process stands in.
    folders = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if os.path.isabs(folder)]
    found = shutil.which("brigd", path=os.pathsep.join(folders))
    if found is not None:
        return found
    raise BrigError(
        "start_failed",
        "there is no brigd to connect to and none to start",
        hint="start the service, name its socket with BRIG_SOCKET, put brigd on PATH, or name it with BRIGD",
    )
