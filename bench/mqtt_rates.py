#!/usr/bin/env python3
"""Messages a second to one broker (Debian's mosquitto) at QoS 0 and 1, 256 and 1,024 bytes: by
echelle-mqtt's publisher, by bare libmosquitto and by Python's paho, in turns; medians over the turns.

All publish to one topic that nobody subscribes to, with at most 100 messages in flight at QoS 1. The
time is until the broker has acknowledged the last message (at QoS 0, one at QoS 1 that follows it).
"""

import argparse
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import paho.mqtt.client as paho
from programs import BINARIES, PATIENCE_S, median, run_bench

WINDOW = 100
CLIENTS = ("gateway", "libmosquitto", "paho")


class Broker:
    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="echelle-bench-"))
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        (self.folder / "conf").write_text(
            f"listener {self.port} 127.0.0.1\nallow_anonymous true\nlog_type error\nuser root\n"
            f"max_inflight_messages {WINDOW}\nmax_queued_messages 0\nset_tcp_nodelay true\n"
        )
        program = shutil.which("mosquitto", path="/usr/sbin:/usr/bin")
        self.process = subprocess.Popen([program, "-c", str(self.folder / "conf")],
                                        stderr=subprocess.DEVNULL)  # fmt: skip
        deadline = time.monotonic() + 10
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return self
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def __exit__(self, *error):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def rate_of_paho(port, qos, size, messages):
    client = paho.Client(client_id="bench-paho", protocol=paho.MQTTv5)
    client.max_inflight_messages_set(WINDOW)
    client.max_queued_messages_set(0)
    client.connect("127.0.0.1", port)
    client.loop_start()
    while not client.is_connected():
        time.sleep(0.001)
    payload = b"x" * size
    begun = time.monotonic()
    for _ in range(messages):
        client.publish("echelle/bench/bands/00007", payload, qos)
    client.publish("echelle/bench/status", b"done", 1).wait_for_publish(PATIENCE_S)
    seconds = time.monotonic() - begun
    client.disconnect()
    client.loop_stop()
    return messages / seconds


def one_rate(client, port, qos, size, messages):
    if client == "paho":
        return rate_of_paho(port, qos, size, messages // 5)
    return run_bench("mqtt_rates", "--client", client, "--port", port, "--qos", qos, "--bytes", size,
                     "--messages", messages)["rate"]  # fmt: skip


def measure(turns, messages):
    """[{"qos", "bytes", one median for each client}]"""
    rows = []
    with Broker() as broker:
        for qos in (0, 1):
            for size in (256, 1024):
                rates = {client: [] for client in CLIENTS}
                for turn in range(turns):
                    for client in CLIENTS[turn % 3 :] + CLIENTS[: turn % 3]:
                        rates[client].append(one_rate(client, broker.port, qos, size, messages))
                rows.append({"qos": qos, "bytes": size}
                            | {client: median(found) for client, found in rates.items()})  # fmt: skip
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--messages", type=int, default=50_000)
    given = parser.parse_args()
    if not (BINARIES / "bench_mqtt_rates").exists():
        sys.exit("mqtt_rates: build it first: bash bench/run.sh builds everything")
    print(json.dumps(measure(given.turns, given.messages), indent=2))


if __name__ == "__main__":
    main()
