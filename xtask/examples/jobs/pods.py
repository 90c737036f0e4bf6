"""Pods as a job system meets them: each takes its time to start and to go, and who waits asks again and again."""

import json
import random
import time

# Between two looks at a pod, and what a pod takes to start and to go.
POLL_S = 0.001
START_S = (0.03, 0.06)
STOP_S = (0.02, 0.04)


class Cluster:
    def __init__(self, seed):
        self.dice = random.Random(seed)

    def start_pod(self, number):
        return Pod(f"job-{number}", self.dice)


class Pod:
    def __init__(self, name, dice):
        self.name = name
        self.dice = dice
        self.turn_to("Running", START_S)

    def turn_to(self, phase, bounds):
        self.phase = phase
        self.ready_at = time.monotonic() + self.dice.uniform(*bounds)

    def stop(self):
        self.turn_to("Gone", STOP_S)

    def wait_until(self, phase):
        """The polling loop: it asks for the whole state each time, and sleeps."""
        while self.read_state()["status"]["phase"] != phase:
            time.sleep(POLL_S)

    def read_state(self):
        """What the cluster's interface answers: a long text of which one word is wanted."""
        reached = time.monotonic() >= self.ready_at
        state = {
            "metadata": {"name": self.name, "labels": {f"label-{i}": str(i) for i in range(20)}},
            "spec": {"containers": [{"name": f"container-{i}", "image": "registry/report:7"} for i in range(4)]},
            "status": {"phase": self.phase if reached else "Pending"},
        }
        return json.loads(json.dumps(state))
