"""pydantic-monty with reused workers: the peer closest in design.

Prints one JSON object a line for brig-bench. Its workers are not confined by the kernel
and serve one evaluation after another; its programs are a subset of Python.
"""

import json
import threading
import time

import pydantic_monty


def figures(name, run, count):
    for _ in range(max(3, count // 10)):
        run()
    times = []
    for _ in range(count):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e6)
    times.sort()
    print(json.dumps({"name": name, "p50": times[count // 2], "p99": times[count * 99 // 100], "least": times[0]}), flush=True)
    return times[count // 2]


def throughput(run, threads, count):
    def work():
        for _ in range(count):
            run()

    workers = [threading.Thread(target=work) for _ in range(threads)]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return threads * count / (time.perf_counter() - start)


def main():
    functions = {"echo": lambda n: n}
    with pydantic_monty.Monty(min_processes=2, max_processes=2) as pool:

        def evaluate(code, expected):
            with pool.checkout() as session:
                value = session.feed_run(code, external_lookup=functions)
            assert value == expected, (value, expected)

        def calls(count):
            return f"s = 0\nfor i in range({count}):\n    s += echo(1)\ns"

        figures("peer: monty, worker reused, 1+2", lambda: evaluate("1+2", 3), 1000)
        ten = figures("peer: monty, 10 host calls", lambda: evaluate(calls(10), 10), 200)
        hundred = figures("peer: monty, 100 host calls", lambda: evaluate(calls(100), 100), 100)
        print(json.dumps({"name": "peer: monty, one host call", "value": (hundred - ten) / 90}), flush=True)
        rate = throughput(lambda: evaluate("1+2", 3), 8, 400)
        print(json.dumps({"name": "peer: monty, evaluations/s, 8 threads", "value": rate}), flush=True)


main()
