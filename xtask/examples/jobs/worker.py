"""A worker of the job system that `cargo xtask demo` compares: on a machine, or with a pod for each job.

In: the board's port, `machine` or `pods`, and a number. It runs until its standard input ends.
"""

import socket
import sys
import threading
import time

from pods import Cluster
from report import Report, orders

# What a job waits for its data, whoever runs it.
FETCH_S = 0.05


class Line:
    """A connection on which a line is asked and a line is answered."""

    def __init__(self, port):
        self.stream = socket.create_connection(("127.0.0.1", port)).makefile("rw")

    def ask(self, text):
        self.stream.write(text + "\n")
        self.stream.flush()
        return int(self.stream.readline())


class Worker:
    def __init__(self, port, cluster):
        self.board = Line(port)
        self.cluster = cluster

    def work(self):
        try:
            while True:
                self.run_job(self.board.ask("take"))
                self.board.ask("done")
        except (OSError, ValueError):
            pass  # The board has gone.

    def run_job(self, number):
        if self.cluster is None:
            return self.build_report(number)
        pod = self.cluster.start_pod(number)
        pod.wait_until("Running")
        report = self.build_report(number)
        pod.stop()
        pod.wait_until("Gone")
        return report

    def build_report(self, number):
        time.sleep(FETCH_S)
        return Report(orders(number)).build()


if __name__ == "__main__":
    port, where, seed = sys.argv[1:4]
    cluster = Cluster(int(seed)) if where == "pods" else None
    threading.Thread(target=Worker(int(port), cluster).work, daemon=True).start()
    sys.stdin.read()
