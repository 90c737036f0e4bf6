"""The board from which workers take jobs: a line `take` is answered with a job's number, `done` with how many are done.

In: nothing. Out: its port, as the first line. It runs until its standard input ends, and says then how many were done.
"""

import itertools
import socketserver
import sys
import threading


class Board:
    def __init__(self):
        self.numbers = itertools.count(1)
        self.done = 0
        self.lock = threading.Lock()

    def take(self):
        with self.lock:
            return next(self.numbers)

    def report_done(self):
        with self.lock:
            self.done += 1
            return self.done


class Answers(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            answer = BOARD.take() if line.strip() == b"take" else BOARD.report_done()
            self.wfile.write(b"%d\n" % answer)


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


BOARD = Board()

if __name__ == "__main__":
    server = Server(("127.0.0.1", 0), Answers)
    print(server.server_address[1], flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()
    print(BOARD.done, flush=True)
