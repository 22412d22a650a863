#!/usr/bin/env python3
"""Makes worker/hot-functions.txt: which functions a worker runs, by single steps, and
which constants they name.

Owns: the list. Never: part of a build or of a test. Needs root, for ptrace of a process
that is not dumpable, and a map of the release build with the list as it is:

    cargo rustc --release -p brig-worker --bin brig-worker -- -C link-arg=-Wl,-Map=worker.map
    python3 benches/order/trace.py PATH/brig-worker worker.map > worker/hot-functions.txt

It plays the supervisor to a nursery, follows the first fork from its first instruction to
the worker's answer, and looks each address up in the map of lld.
"""

import array
import bisect
import ctypes
import json
import os
import re
import socket
import struct
import subprocess
import sys
import time

SEIZE, CONT, STEP, GETREGS, TRACE_FORK = 0x4206, 7, 9, 12, 2
QUIET = 1.0
LARGE = 16 << 10
ORDER = {
    "source": "1+2", "form": "auto", "language": "auto", "collections": [],
    "limits": {"timeoutMs": 30000, "cpuMs": 10000, "heapBytes": 64 << 20, "hostCalls": 100, "hostCallsInFlight": 8,
               "resultBytes": 1 << 20, "consoleBytes": 1 << 16, "inputBytes": 1 << 20, "outputBytes": 1 << 20, "drainMs": 1000,
               "functionTimeoutMs": 30000},
}
REGISTERS = "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fsb gsb ds es fs gs".split()


class Registers(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulong) for name in REGISTERS]


LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def ptrace(request, pid, data=0):
    if LIBC.ptrace(request, pid, 0, data) < 0:
        raise OSError(ctypes.get_errno(), "ptrace")


def start_nursery(binary):
    """The nursery's process, and the link to it."""
    link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    first = subprocess.Popen([binary, "nursery"], stdin=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={})
    theirs.close()
    link.send(struct.pack("<BBBBBQQQIII", 1, 1, 0, 1, 1, 64 << 20, 8 << 20, 256 << 20, 10000, 0, 0))
    assert link.recv(256)[0] == 65, "the nursery did not get ready"
    below = open(f"/proc/{first.pid}/task/{first.pid}/children").read().split()
    return int(below[0]) if below else first.pid, link


def stepped(nursery, link):
    """Addresses that the first worker ran, until it said nothing for a while after its answer."""
    with open(f"/proc/{nursery}/maps") as maps:
        base = next(int(line.split("-")[0], 16) for line in maps if "brig-worker" in line)
    ptrace(SEIZE, nursery, TRACE_FORK)
    link.send(struct.pack("<BBHQIB", 2, 1, 0, 1, 0, 0))
    seen, registers, worker, last = set(), Registers(), None, time.monotonic()
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG | 0x40000000)
        if pid == 0:
            if time.monotonic() - last < QUIET:
                continue
            if worker is not None:
                answer = worker.recv(4096)
                assert b'"value":3' in answer, answer
                return seen
            _, rights, _, _ = link.recvmsg(256, 256)
            descriptors = array.array("i", rights[0][2][:8])
            worker = socket.socket(fileno=descriptors[1])
            worker.recv(4096)
            for message in ({"method": "rehearse"}, {"id": 1, "method": "evaluate", "params": ORDER}):
                body = json.dumps({"jsonrpc": "2.0", **message}).encode()
                worker.send(struct.pack("<I", len(body)) + body)
        elif os.WIFSTOPPED(status):
            signal = os.WSTOPSIG(status) if os.WSTOPSIG(status) not in (5, 19) else 0
            if pid == nursery:
                ptrace(CONT, pid, signal)
            else:
                ptrace(GETREGS, pid, ctypes.addressof(registers))
                seen.add(registers.rip - base)
                ptrace(STEP, pid, signal)
        last = time.monotonic()


def constants(binary, seen):
    """Addresses that the instructions at these addresses name, for reading or to hand on."""
    listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", binary], capture_output=True, text=True, check=True).stdout
    named = re.finditer(r"^ *([0-9a-f]+):\t.*# (?:0x)?([0-9a-f]+)\b", listing, re.MULTILINE)
    return {int(match[2], 16) for match in named if int(match[1], 16) in seen}


def sections(path):
    """Start, length, file and name of each input section of text and of constants."""
    found = []
    with open(path) as lines:
        for line in lines:
            parts = line.split(None, 4)
            if len(parts) == 5 and (":(.text" in parts[4] or ":(.rodata" in parts[4]):
                file, name = parts[4].strip().rsplit(":(", 1)
                found.append((int(parts[0], 16), int(parts[2], 16), file.rsplit("/", 1)[-1], name[:-1]))
    return sorted(found)


def line_of(file, name):
    """How the list names a section, without what changes from build to build."""
    if file.startswith("lib") and name == ".rodata":
        return re.sub(r"-[0-9.]+\.a", "-*.a", file).rstrip(")").replace("(", ":") + f"({name})"
    if file.startswith("lib") and not name.startswith((".text._", ".text.unlikely._")) and "quickjs" not in file:
        # Of a function with a form for each processor all forms: another machine runs another.
        archive, member = re.sub(r"-[0-9.]+\.a", "-*.a", file).rstrip(")").split("(")
        return f"{archive}:{member}({name})" if name == ".text" else f"{archive}:{member.split('-')[0]}-*.o(.text.*)"
    name = re.sub(r"17h[0-9a-f]{16}E", "17h*E", re.sub(r"\.llvm\.\d+.*", "*", name))
    name = re.sub(r"Cs[0-9A-Za-z]+_", "Cs*_", name) if "._R" in name else name
    return re.sub(r"\.(constprop|part|isra|cold)\.?\d*", "*", name)


def main():
    binary, path = sys.argv[1:]
    every = sections(path)
    starts = [section[0] for section in every]
    lines = set()
    seen = stepped(*start_nursery(binary))
    for address in seen | constants(binary, seen):
        place = bisect.bisect(starts, address) - 1
        start, length, file, name = every[max(place, 0)]
        # Of a large table little is read: it would only drive the others apart.
        if start <= address < start + length and (name.startswith(".text") or length < LARGE):
            lines.add(line_of(file, name))
    print("# What runs in a worker from its fork to the answer of `1+2`, and the constants that it names; see build.rs beside this.")
    print("\n".join(sorted(lines)))


if __name__ == "__main__":
    main()
