"""/metrics: what is served, what it is compared with, and what cannot hurt the run."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse
import urllib.request

import pytest
import zmq
from bad_sources import garbage
from cluster import REPOSITORY, SIMULATOR, check_books, wait_until
from scrape import fetch, parse, scrape

PROMTOOL = shutil.which("promtool")
PROMETHEUS = shutil.which("prometheus")
needs_prometheus = pytest.mark.skipif(
    not (PROMTOOL and PROMETHEUS), reason="needs Debian's prometheus (deploy/install-deps.sh)"
)
DEPLOY = REPOSITORY / "deploy"
# 98 frames a second, with room for a busy machine.
CALM = ["--source", "sim:?channels=4&samples=256&rate=25e3", "--nperseg", 256, "--average", 4]
WORKERS = 3


class Coordinator:
    def __init__(self, place, *arguments, name="echelle", **options):
        self.place, self.name = place, name
        self.run = place.coordinator("--name", name, "--metrics", 0, *arguments, **options)
        self.address = place.running_status(name)["metrics"]["address"]

    def scrape(self):
        return scrape(self.address)

    def status(self):
        return self.place.status(self.name)

    def stop(self):
        self.run.send(signal.SIGTERM)
        finished = self.run.finish()
        assert finished.code == 0, finished.err
        return finished


@pytest.fixture
def coordinator(place):
    capture = place.output / "capture"
    made = Coordinator(place, *CALM, "--workers", WORKERS, "--capture", capture)
    yield made
    if not made.run.has_ended():
        made.stop()


def figures_of(status):
    """Figures of a status that only grow, under the names that /metrics has for them."""
    frames, blocks, spectra = status["frames"], status["blocks"], status["spectra"]
    figures = {
        "echelle_frames_in_total": frames["in"],
        "echelle_frames_done_total": frames["done"],
        "echelle_blocks_made_total": blocks["made"],
        "echelle_blocks_done_total": blocks["done"],
        "echelle_blocks_requeued_total": blocks["requeued"],
        "echelle_spectra_total": spectra["out"],
        "echelle_spectra_incomplete_total": spectra["incomplete"],
        "echelle_worker_deaths_total": len(status["recoveries"]),
        "echelle_feed_messages_total": status["feed"]["published"],
        "echelle_capture_frames_in_total": status["capture"]["frames"]["in"],
        "echelle_capture_bytes_total": status["capture"]["bytes"],
    }
    for worker in status["workers"]:
        label = str(worker["id"])
        figures["echelle_worker_blocks_total", label] = worker["blocks"]
        figures["echelle_worker_busy_seconds_total", label] = worker["busy_s"]
        figures["echelle_worker_lives_total", label] = worker["incarnations"]
    return figures


def served(families, key):
    name, *worker = key if isinstance(key, tuple) else (key,)
    return families[name].of(worker=worker[0]) if worker else families[name].of()


def check_sums(families):
    """The books close within one answer, and histograms count what they say."""
    of = {name: family.of() for name, family in families.items()}
    assert of["echelle_frames_in_total"] == (
        of["echelle_frames_done_total"]
        + of["echelle_frames_dropped_total"]
        + of["echelle_frames_in_flight"]
    )
    assert of["echelle_blocks_made_total"] == sum(
        of[f"echelle_blocks_{name}"]
        for name in ("done_total", "dropped_total", "failed_total", "in_flight")
    )
    for family in families.values():
        if family.type != "histogram":
            continue
        buckets = {}
        for (name, labels), value in family.samples.items():
            if name.endswith("_bucket"):
                edge = float(dict(labels)["le"])
                rest = tuple(label for label in labels if label[0] != "le")
                buckets.setdefault(rest, []).append((edge, value))
        for rest, counted in buckets.items():
            values = [value for _, value in sorted(counted)]
            assert values == sorted(values) and counted[-1][0] == float("inf")
            assert values[-1] == family.samples[f"{family.name}_count", rest]


def test_what_is_served_stands_between_two_statuses(coordinator):
    """The same books: each figure is what `status` says before and after, or between the two."""
    for _ in range(3):
        before = figures_of(coordinator.status())
        time.sleep(0.15)  # beyond the time for which an answer may be used again
        families = coordinator.scrape()
        after = figures_of(coordinator.status())
        check_sums(families)
        for key, least in before.items():
            assert least <= served(families, key) <= after[key], key
    status = coordinator.status()
    assert families["echelle_workers_alive"].of() == WORKERS
    assert families["echelle_ring_bytes"].of() == status["memory"]["ring_bytes"]
    assert families["echelle_channels"].of() == status["config"]["channels"]
    assert families["echelle_sample_rate_hertz"].of() == status["config"]["rate_hz"]
    latency = families["echelle_latency_seconds"]
    mean_s = latency.samples["echelle_latency_seconds_sum", ()] / latency.of()
    assert 0 < mean_s <= status["frame_us"]["latency"]["max"] / 1e6
    assert 0 <= families["echelle_books_age_seconds"].of() < 1
    started_s = families["echelle_start_time_seconds"].of()
    assert started_s <= time.time() and time.time() - started_s < 60


def test_counters_never_fall_whoever_dies_or_is_scaled_away(coordinator):
    largest = {}

    def look():
        for family in coordinator.scrape().values():
            for key, value in family.counted().items():
                assert value >= largest.get(key, 0), (key, value, largest[key])
                largest[key] = value
        return largest

    look()
    kills = 3
    for kill in range(kills):
        pid = next(w["pid"] for w in coordinator.status()["workers"] if w["id"] == kill)
        os.kill(pid, signal.SIGKILL)
        look()
        key = "echelle_recoveries_total", (("cause", "SIGKILL"),)
        assert wait_until(lambda: look()[key] == kill + 1, pause_s=0.12)
    assert coordinator.place.control("scale", 1).code == 0
    look()
    assert wait_until(lambda: coordinator.scrape()["echelle_workers_alive"].of() == 1, pause_s=0.1)
    assert coordinator.place.control("scale", WORKERS).code == 0
    assert wait_until(lambda: coordinator.scrape()["echelle_workers_alive"].of() == WORKERS)
    families = coordinator.scrape()
    look()
    assert families["echelle_worker_deaths_total"].of() == kills
    # A respawn for each death; being scaled away and coming back is none.
    assert families["echelle_respawn_seconds"].of() == kills
    assert families["echelle_scaling_decisions_total"].of(direction="down") == 1
    assert families["echelle_scaling_decisions_total"].of(direction="up") == 1
    report = coordinator.status()
    assert len(report["recoveries"]) == kills


def rows_of(page):
    """name -> (type, labels, meaning), of the tables of docs/metrics.md."""
    rows = {}
    for line in page.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and re.match(r"`(echelle|exposer)_", cells[0]):
            name = cells[0].strip("`")
            assert name not in rows, f"{name} stands twice in {page}"
            rows[name] = cells[1], set(re.findall(r"`(\w+)`", cells[2])), cells[4]
    return rows


def test_the_page_lists_what_is_served(coordinator, tmp_path):
    """And nothing else. A source's metrics depend on it: those of the page are those of its table,
    and those that two kinds of source serve are looked at."""
    rows = rows_of(REPOSITORY / "docs/metrics.md")
    of_sources = {name: row for name, row in rows.items() if name.startswith("echelle_source_")}
    families = coordinator.scrape()
    assert {
        name: (family.type, family.labels(), family.help) for name, family in families.items()
    } == {name: row for name, row in rows.items() if name not in of_sources}
    for family in families.values():
        unit = family.name.removesuffix("_total")
        assert family.type != "counter" or family.name.endswith("_total")
        assert family.type != "histogram" or unit.endswith("_seconds")

    table = (REPOSITORY / "coordinator/metrics/source_families.cpp").read_text()
    named = set(re.findall(r'\{"/[^"]*",\s*"(\w+)"', table)) | {"stream_packets_total"}
    assert {f"echelle_source_{name}" for name in named} == set(of_sources)


def test_a_source_serves_what_it_counts(place):
    """A card that loses, repeats and flags frames, and a file that has been played."""
    fifo = place.path / "fifo"
    os.mkfifo(fifo)
    card = place.start(
        SIMULATOR, "--channels", 4, "--pace", "realtime", "--rate", "1e6", "--drop-every", 10,
        "--repeat-every", 7, "--write-framed", fifo,
    )  # fmt: skip
    run = Coordinator(place, "--source", f"xdma:{fifo}?reopen=no", "--workers", 1)
    rows = rows_of(REPOSITORY / "docs/metrics.md")

    def sees_all():
        families = run.scrape()
        source = {name: of for name, of in families.items() if name.startswith("echelle_source_")}
        for name, family in source.items():
            assert (family.type, family.help) == (rows[name][0], rows[name][2])
        lost = source.get("echelle_source_frames_lost_total")
        return source if lost and source["echelle_source_frames_repeated_total"].of() else None

    source = wait_until(sees_all)
    assert source["echelle_source_frames_lost_total"].of(cause="overflow") > 0
    assert source["echelle_source_frame_flags_total"].of(cause="overflow") > 0
    assert source["echelle_source_framing_faults_total"].of() == 0
    families = run.scrape()
    # Told twice, by the card's reader and by the books of the run, and the same.
    lost = families["echelle_source_frames_lost_total"].of(cause="overflow")
    assert abs(lost - families["echelle_frames_dropped_total"].of(reason="lost_by_source")) <= 3
    run.stop()
    card.process.kill()
    card.finish()


def test_bad_addresses_are_refused(place):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for address, words in [
            (port, [f"127.0.0.1:{port}", "in use", "another port"]),
            (f"192.0.2.7:{port}", ["192.0.2.7", "assign", "ip address"]),
            ("localhost:9760", ["localhost:9760", "numeric address"]),
            ("99999", ["99999", "65535"]),
        ]:
            refused = place.run("--metrics", address, *CALM, code=2)
            assert len(refused.error_lines) == 1, refused.err
            assert all(word in refused.err for word in words), refused.err


def threads_of(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


def test_hostile_scrapers_cost_nothing_that_counts(coordinator):
    """A thousand connections that say nothing, slow drip, rubbish, an answer that nobody reads."""
    host, port = coordinator.address.split(":")
    pid = coordinator.run.pid
    before = coordinator.scrape()
    threads = threads_of(pid)
    silent = []
    for _ in range(1000):
        made = socket.socket()
        made.setblocking(False)
        made.connect_ex((host, int(port)))
        silent.append(made)
    rubbish = [garbage(1, 4096), b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01" + garbage(2, 200),
               b"GET /" + b"a" * 20_000, b"POST /metrics HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n",
               b"GET /metrics HTTP/1.1\r\nContent-Length: -1\r\n\r\n"]  # fmt: skip
    for number, made in enumerate(silent):
        try:
            made.send(rubbish[number % len(rubbish)] if number % 3 == 0 else b"G")
        except OSError:
            pass  # not connected yet, or refused
    most_threads, most_files = 0, 0
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline:
        most_threads = max(most_threads, threads_of(pid))
        most_files = max(most_files, len(os.listdir(f"/proc/{pid}/fd")))
        assert coordinator.status()["frames"]["in"] > 0  # control answers all the while
        time.sleep(0.1)
    assert most_threads <= threads + 1
    assert most_files < 200
    for made in silent:
        made.close()
    families = wait_until(lambda: try_scrape(coordinator), seconds=30)
    assert families, "no answer after the flood"
    check_sums(families)
    grown = (families["echelle_coordinator_resident_bytes"].of()
             - before["echelle_coordinator_resident_bytes"].of())  # fmt: skip
    assert grown < 8 << 20
    assert families["echelle_frames_done_total"].of() > before["echelle_frames_done_total"].of()

    # A run ends when it is asked to, whoever hangs on.
    hanging = [socket.create_connection((host, int(port))) for _ in range(8)]
    for made in hanging:
        made.send(b"GET /metrics HT")
    began = time.monotonic()
    coordinator.stop()
    assert time.monotonic() - began < 15
    for made in hanging:
        made.close()


def try_scrape(coordinator):
    try:
        return coordinator.scrape()
    except OSError:
        return None


def test_other_pages_do_not_exist(coordinator):
    for page in ("/", "/../../etc/passwd", "/metrics/../../../etc/passwd", "/%2e%2e/etc/passwd"):
        with socket.create_connection(coordinator.address.split(":")) as made:
            made.sendall(f"GET {page} HTTP/1.0\r\n\r\n".encode())
            assert b" 404 " in made.makefile("rb").readline()


def promtool(*arguments, text=None):
    done = subprocess.run(
        [PROMTOOL, *map(str, arguments)], input=text, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@needs_prometheus
def test_promtool_finds_nothing_wrong(place):
    """Not even where a file's name is no text: it stands in a label."""
    file = os.fsdecode(os.fsencode(place.output) + b'/a "\\ \xff.raw')
    with open(file, "wb") as samples:
        samples.truncate(64 << 20)
    run = Coordinator(place, "--channels", 1, "--rate", "1e5", "--workers", 1, "--source",
                      f"raw:{file}?pace=realtime")  # fmt: skip
    assert promtool("check", "metrics", text=fetch(run.address)) == ""
    run.stop()
    rules = DEPLOY / "prometheus/echelle.rules.yml"
    assert "12 rules found" in promtool("check", "rules", rules)
    promtool("check", "config", DEPLOY / "prometheus/prometheus.yml")
    promtool("test", "rules", REPOSITORY / "tests/integration/alert_rules.yml")


class Prometheus:
    """Debian's own server on a port of its own, scraping every second."""

    def __init__(self, place, addresses):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        folder = place.path / "prometheus"
        folder.mkdir()
        targets = ", ".join(f'"{address}"' for address in addresses)
        (folder / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
            f"rule_files: ['{DEPLOY / 'prometheus/echelle.rules.yml'}']\n"
            "scrape_configs:\n"
            f"  - {{job_name: echelle, static_configs: [{{targets: [{targets}]}}]}}\n"
        )
        self.run = place.start(
            PROMETHEUS, f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address={self.address}",
            "--log.level=error",
        )  # fmt: skip

    def ask(self, query):
        url = f"http://{self.address}/api/v1/query?" + urllib.parse.urlencode({"query": query})
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as refusal:
            raise AssertionError(f"{query}: {refusal.read().decode()}") from None

    def is_there(self):
        try:
            with urllib.request.urlopen(f"http://{self.address}/-/ready", timeout=10):
                return True
        except OSError:
            return False

    def stop(self):
        self.run.send(signal.SIGTERM)
        self.run.finish()


def queries_of_the_dashboard():
    dashboard = json.loads((DEPLOY / "grafana/echelle.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            query = target["expr"].replace("$instance", ".*").replace("$__rate_interval", "4s")
            assert "$" not in query, query
            yield panel["title"], query


def has_a_value(result):
    return any(sample["value"][1] not in ("NaN", "+Inf", "-Inf") for sample in result)


@needs_prometheus
def test_the_dashboards_queries_return_data_from_a_live_run(place):
    fifo = place.path / "fifo"
    os.mkfifo(fifo)
    card = place.start(
        SIMULATOR, "--channels", 2, "--pace", "realtime", "--rate", "1e6", "--drop-every", 10,
        "--write-framed", fifo,
    )  # fmt: skip
    of_card = Coordinator(place, "--source", f"xdma:{fifo}", "--workers", 1, name="card")
    simulated = Coordinator(place, *CALM, "--workers", 2, "--capture", place.output / "capture")
    subscriber = zmq.Context.instance().socket(zmq.SUB)
    subscriber.set(zmq.LINGER, 0)
    subscriber.connect(f"ipc://{place.runtime}/echelle/echelle/feed")
    subscriber.subscribe("psd/")
    server = Prometheus(place, [of_card.address, simulated.address])
    assert wait_until(server.is_there)
    # A counter shows an increase only to whoever knows it from before.
    assert wait_until(lambda: len(server.ask("echelle_worker_deaths_total")) == 2, pause_s=0.2)
    os.kill(simulated.status()["workers"][0]["pid"], signal.SIGKILL)

    missing = []

    def all_return_data():
        missing[:] = [q for q in queries_of_the_dashboard() if not has_a_value(server.ask(q[1]))]
        return not missing

    assert wait_until(all_return_data, seconds=30, pause_s=0.5), missing
    assert {sample["metric"]["instance"] for sample in server.ask("echelle_build_info")} == {
        of_card.address, simulated.address
    }  # fmt: skip
    # The card's losses raise an alert, and nothing is raised that should not be.
    alerts = 'ALERTS{alertname=~"Echelle(FramesDropped|WorkerDeaths)",alertstate="firing"}'
    wanted = {("EchelleFramesDropped", of_card.address), ("EchelleWorkerDeaths", simulated.address)}

    def firing():
        return {
            (s["metric"]["alertname"], s["metric"]["instance"]) for s in server.ask(alerts)
        } >= wanted

    assert wait_until(firing, seconds=30, pause_s=0.5), server.ask("ALERTS")
    server.stop()
    subscriber.close()
    check_books(simulated.status())
    simulated.stop()
    of_card.stop()
    card.process.kill()
    card.finish()
