"""Tables of the bench's results, as Markdown: for the screen and for docs/performance.md."""

import re


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "| " + " | ".join("---" for _ in header) + " |"]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def us(value):
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def megasamples(rate_hz):
    return f"{rate_hz / 1e6:.2f} MS/s"


def critical_rate_text(search):
    if search["critical_rate_hz"] is None:
        return f"below {megasamples(min(each['rate_hz'] for each in search['tried']))}"
    return megasamples(search["critical_rate_hz"])


def run_table(results):
    machine = results["machine"]
    return table(("", ""), [
        ("run", f"{results['mode']}, {results['date']}, version {machine['commit']}"),
        ("machine", f"{machine['cpu']}, {machine['cpus']} CPUs, Linux {machine['kernel']}; load "
                    f"before the run {machine['load_before']:.1f}"),
    ])


def chain_table(results):
    rows = [
        (each["layout"], each["average"], each["workers"], us(each["bare_fft_us"]),
         us(each["engine_us"]), us(each["chain_us"]), f"{each['engine_over_bare_fft']:.2f}",
         f"**{each['chain_over_bare_fft']:.2f}**",
         f"{each['throughput_over_kernels_alone']:.2f}",
         f"{each['throughput_over_kernels_at_once']:.2f}")
        for each in results["chain"]
    ]
    return table(("layout", "average", "workers", "bare FFT", "engine", "whole chain",
                  "engine / FFT", "chain / FFT", "throughput / kernels, each alone",
                  "… / kernels at once"), rows)


def breakdown_table(results):
    """Where the chain's core time goes, from what was measured apart."""
    rows = []
    for each in results["chain"]:
        threads = each["chain_us_by_thread"]
        worker = sum(used for name, used in threads.items()
                     if name.startswith("worker: ") and "ZMQ" not in name)
        worker_zmq = sum(used for name, used in threads.items()
                         if name.startswith("worker: ") and "ZMQ" in name)
        rest = sum(used for name, used in threads.items() if not name.startswith("worker: "))
        rows.append((
            each["layout"], each["average"], each["workers"], us(each["bare_fft_us"]),
            us(each["engine_us"] - each["bare_fft_us"]), us(each["seal_us"]),
            us(worker - each["engine_us"] - each["seal_us"]), us(worker_zmq), us(rest),
            us(each["chain_us"])))
    return table(("layout", "average", "workers", "FFT", "rest of the engine", "sealing",
                  "rest of the worker", "its ZeroMQ threads", "coordinator", "in all"), rows)


def kernels_table(results):
    figures = results["kernels"]
    rows = []
    for name, run in sorted(figures.items()):
        shape, _, target = name.removeprefix("engine/").partition("/target:")
        # The default target is measured under the plain name as well.
        if not name.startswith("engine/") or target == figures[f"engine/{shape}"]["label"]:
            continue
        bare_s = figures[f"bare_fft/{shape}"]["s_per_frame"]
        layout, kind, average = shape.split("/")
        rows.append((layout, kind, average.removeprefix("average:"), run.get("label", ""),
                     us(bare_s * 1e6), us(run["s_per_frame"] * 1e6),
                     f"{run['s_per_frame'] / bare_s:.2f}"))
    return table(("layout", "format", "average", "SIMD target", "bare FFT", "engine",
                  "engine / FFT"), rows)


def latency_table(results):
    rows = []
    for kind, each in results["latency"].items():
        chain, trip = each["chain_us"], each["round_trip_us"]
        rows.append((
            kind, us(chain["p50"]), us(chain["p90"]), us(chain["p99"]),
            us(trip["p50"]), us(trip["p99"]), us(each["round_trip_p99_since_begun_us"]),
            us(each["compute_us"]),
            f"{each['p99_over_allowed']:.2f}", each["dropped"]))
    return table(("wake-up", "P50", "P90", "P99", "round trip P50", "round trip P99",
                  "… since it began", "compute",
                  "P99 / 2 (round trip P99 + compute)", "frames lost"), rows)


def hops_table(results):
    """The hops of which the latency consists, as the coordinator's report has them."""
    rows = [(kind, hop.replace("_", " "), us(each["p50"]), us(each["p99"]))
            for kind, run in results["latency"].items() if run["hops"]
            for hop, each in run["hops"].items()]
    return table(("wake-up", "hop", "P50", "P99"), rows)


def hand_out_table(results):
    rows = [(kind, f"{each['blocks_per_s']:,.0f}", f"{each['paced_blocks_per_s']:,.0f}",
             us(each["paced_p50_us"]), us(each["paced_p99_us"]))
            for kind, each in results["hand_out"].items()]
    return table(("wake-up", "blocks/s, as many as possible", "blocks/s, paced", "P50 when paced",
                  "P99 when paced"), rows)


def packet_table(results):
    rows = []
    for values, size in ((32, 128), (513, 2052)):
        def ns(name, values=values):
            return results["packet"][f"{name}/{values}"]["cpu_ns"]

        allowed_ns = 1.2 * ns("bare_crc") + 50
        rows.append((
            f"{size:,}", f"{ns('seal_1_1_in_place'):.0f}", f"{ns('bare_crc'):.0f}",
            f"{ns('seal_1_1_in_place') / allowed_ns:.2f}",
            f"{ns('protobuf_1_1') / ns('seal_1_1_in_place'):.2f}",
            f"{ns('protobuf_1_1_reused') / ns('seal_1_1_in_place'):.2f}",
            f"{ns('encode_1_0_with_copy'):.0f}", f"{ns('bare_memcpy'):.0f}",
            f"{ns('encode_1_0_with_copy') / ns('bare_memcpy'):.2f}",
            f"{ns('protobuf_1_0') / ns('encode_1_0_with_copy'):.2f}",
            f"{ns('protobuf_1_0_reused') / ns('encode_1_0_with_copy'):.2f}"))
    return table(("bytes of values", "seal 1.1, ns", "bare CRC, ns", "seal / (1.2 CRC + 50 ns)",
                  "Protocol Buffers / seal", "… reused", "encode 1.0, ns", "memcpy, ns",
                  "encode / memcpy", "Protocol Buffers / encode", "… reused"), rows)


def parse_table(results):
    rows = [(version, f"{each['parse_us']:.2f}", f"{each['parse_and_values_us']:.2f}",
             f"{each['struct_unpack_us']:.2f}", f"{each['parse_over_struct_unpack']:.2f}")
            for version, each in results["packet_parse"].items()]
    return table(("version", "decode_packet, µs", "with numpy values, µs", "struct.unpack, µs",
                  "decode / struct.unpack"), rows)


def ledger_table(results):
    return table(("", "ns"), [(name, f"{run['cpu_ns']:.0f}")
                              for name, run in results["ledger"].items()])


def mqtt_table(results):
    return table(("QoS", "bytes", "echelle-mqtt", "bare libmosquitto", "Python's paho"), [
        (each["qos"], f"{each['bytes']:,}", *(f"{each[client]:,.0f}" for client in
                                              ("gateway", "libmosquitto", "paho")))
        for each in results["mqtt"]])


def feed_load_table(results):
    rows = [(name, f"{of['frames']:,}", of["lost"], us(of["p50_us"]), us(of["worker_core_us"]),
             f"{of['published']:,}", f"{of['received']:,}", f"{of['missed']:,}",
             f"{of['memory_mib']:.1f}") for name, of in results["feed_load"].items()]
    return table(("subscribers", "frames", "lost", "P50", "worker core time", "spectra published",
                  "received", "missed", "coordinator's MiB"), rows)


def feed_paths_table(results):
    rows = [(each["path"], f"{each['bytes']:,}", us(each["p50_us"]), us(each["p90_us"]),
             us(each["p99_us"]), us(each["writer_us"]), us(each["reader_us"]), each["missed"])
            for each in results["feed_paths"]]
    return table(("path", "bytes", "P50", "P90", "P99", "coordinator's core time", "reader's",
                  "missed"), rows)


PEER_TITLES = {
    "scipy": "scipy.signal.welch (float32, one thread)",
    "gnuradio": "GNU Radio 3.10 FFT chain",
    "liquid": "liquid-dsp spgramf",
    "naive_cluster": "naive cluster (every frame a message, 3 segments a frame)",
}


def peers_table(results):
    found = results["peers"]
    rows = [("bare FFTW (the limit)", us(found["core_us"]["bare_fft"]), "", "")]
    rows.append(("**Echelle**, whole chain, average 16", us(found["core_us"]["echelle"]), "1",
                 f"{found['worst_relative_error']['echelle']:.1e}"))
    rows.append(("**Echelle**, whole chain, average 1",
                 us(found["core_us"]["echelle, 1 frame a spectrum"]), "", ""))
    rows += [(title, us(found["core_us"][name]), f"{found['times_echelle'][name]:.2f}",
              f"{found['worst_relative_error'][name]:.1e}")
             for name, title in PEER_TITLES.items()]
    return table(("", "core time per frame", "times Echelle's", "worst bin against scipy"), rows)


def real_time_table(results):
    run = results["real_time"]
    memory = run["memory"]
    rows = [
        ("bare FFT on both cores", f"{us(run['bare_fft_us'])} µs per frame"),
        (f"{run['seconds']:.0f} s at 10 MS/s on 128 channels, 2 workers",
         f"{run['frames']['done']:,} frames done, **{run['dropped']:,} lost**"),
        ("real-time factor", f"{run['realtime_factor']:.3f}"),
        ("worker core time", f"{us(run['worker_core_us'])} µs per frame"),
        ("making plans with warm wisdom", f"{run['planning_ms']:.1f} ms"),
        ("latency of blocks", " ".join(f"{p.upper()} {us(run['latency'][p])}"
                                       for p in ("p50", "p99", "max")) + " µs"),
        ("coordinator's memory besides ring and ledger",
         f"{memory['coordinator']['unshared'] / 1e6:.1f} MB"),
        ("ledger and results", f"{run['memory_report']['ledger_bytes'] / 1e6:.1f} MB"),
        ("a worker's private memory", f"{memory['worker']['private'] / 1e6:.1f} MB"),
        ("a worker's memory, program and libraries included",
         f"{memory['worker']['unshared'] / 1e6:.1f} MB"),
        ("the ring's pages", run["memory_report"]["page_kind"]),
    ]
    return table(("", ""), rows)


def critical_rate_table(results):
    rows = [(each["workers"], critical_rate_text(each),
             f"± {each['resolution_hz'] / 1e6:.2f}", megasamples(each["as_fast_as_possible_hz"]),
             f"{each['seconds']:.0f} s") for each in results["critical_rate"]]
    return table(("workers", "nothing lost up to", "MS/s", "as fast as it can", "each run"), rows)


def scaling_table(results):
    steps = results["scaling"]["steps"]
    alone = steps[0]["frames_per_s"]
    rows = [(each["workers"], f"{each['frames_per_s']:,.0f}", us(1e6 / each["frames_per_s"]),
             f"{each['frames_per_s'] / alone:.2f}") for each in steps]
    return table(("workers, in this order", "frames/s", "µs per frame", "times one worker's"), rows)


# ---- the limits


def _chain_verdicts(results):
    for each in results["chain"]:
        if each["average"] == 16:
            yield (f"chain / bare FFT, {each['layout']}, {each['workers']} workers",
                   each["chain_over_bare_fft"], "≤", 1.6)
            if each["workers"] == 2:
                yield (f"throughput of 2 workers / twice the kernel, {each['layout']}",
                       each["throughput_over_kernels_alone"], "≥", 0.9)


def _real_time_verdicts(results):
    run = results["real_time"]
    if run["bare_fft_us"] <= 230:
        yield "frames lost in real time at 10 MS/s", run["dropped"], "≤", 0
    yield "making plans with warm wisdom, ms", run["planning_ms"], "≤", 100
    yield "coordinator's memory, MB", run["memory"]["coordinator"]["unshared"] / 1e6, "≤", 45


def _scaling_verdicts(results):
    yield "frames lost while scaled", sum(results["scaling"]["frames"]["dropped"].values()), "≤", 0


def _latency_verdicts(results):
    for kind, each in results["latency"].items():
        yield f"latency P99 / allowed, {kind}", each["p99_over_allowed"], "≤", 1
    best = min(results["latency"].values(), key=lambda each: each["chain_us"]["p99"])
    for p, limit in (("p50", 142), ("p90", 187), ("p99", 293)):
        yield f"latency {p.upper()} of the quicker wake-up, µs", best["chain_us"][p], "≤", limit


def _hand_out_verdicts(results):
    for kind, each in results["hand_out"].items():
        yield f"hand-outs per second, {kind}", each["blocks_per_s"], "≥", 132_700


def _packet_verdicts(results):
    for values, size in ((32, 128), (513, 2052)):
        ns = {name.split("/")[0]: run["cpu_ns"] for name, run in results["packet"].items()
              if name.endswith(f"/{values}")}
        yield (f"seal 1.1 / (1.2 CRC + 50 ns), {size} bytes",
               ns["seal_1_1_in_place"] / (1.2 * ns["bare_crc"] + 50), "≤", 1)
        yield (f"Protocol Buffers / seal 1.1, {size} bytes",
               ns["protobuf_1_1"] / ns["seal_1_1_in_place"], "≥", 1.8)
        yield (f"Protocol Buffers / encode 1.0, {size} bytes",
               ns["protobuf_1_0"] / ns["encode_1_0_with_copy"], "≥", 1.8)


def _parse_verdicts(results):
    for version, each in results["packet_parse"].items():
        yield f"Python reads a {version} packet, µs", each["parse_us"], "≤", 5


def _peer_verdicts(results):
    for name, factor in results["peers"]["times_echelle"].items():
        yield f"core time of {name} / Echelle's", factor, "≥", 1


def _feed_load_verdicts(results):
    for name, each in results["feed_load"].items():
        yield f"frames lost, subscribers: {name}", each["lost"], "≤", 0


VERDICTS = {
    "chain": _chain_verdicts, "real_time": _real_time_verdicts, "latency": _latency_verdicts,
    "scaling": _scaling_verdicts, "hand_out": _hand_out_verdicts, "packet": _packet_verdicts,
    "packet_parse": _parse_verdicts, "feed_load": _feed_load_verdicts, "peers": _peer_verdicts,
}


def verdict_table(results):
    rows = []
    for section, verdicts in VERDICTS.items():
        if section not in results:
            continue
        for what, value, relation, limit in verdicts(results):
            met = value <= limit if relation == "≤" else value >= limit
            rows.append((what, f"{value:,.0f}" if value >= 1000 else f"{value:.2f}",
                         f"{relation} {limit:,}", "met" if met else "**missed**"))
    return table(("figure", "measured", "wanted", ""), rows)


TABLES = {
    "run": ("Run", run_table, None),
    "verdict": ("What was to be reached", verdict_table, None),
    "chain": ("The whole chain against bare FFTW, µs of core time per frame", chain_table, "chain"),
    "breakdown": ("Where the core time goes, µs per frame", breakdown_table, "chain"),
    "kernels": ("The engine on one core, µs per frame", kernels_table, "kernels"),
    "real_time": ("Real time", real_time_table, "real_time"),
    "scaling": ("Throughput against workers", scaling_table, "scaling"),
    "critical_rate": ("Critical rate", critical_rate_table, "critical_rate"),
    "latency": ("Latency of 16-channel frames in real time, µs", latency_table, "latency"),
    "hops": ("Where the latency goes, µs", hops_table, "latency"),
    "hand_out": ("Hand-outs of empty blocks, µs", hand_out_table, "hand_out"),
    "ledger": ("The ledger alone", ledger_table, "ledger"),
    "packet": ("Packets", packet_table, "packet"),
    "packet_parse": ("Reading a packet of 513 values in Python", parse_table, "packet_parse"),
    "feed_load": ("Subscribers at the full rate, µs", feed_load_table, "feed_load"),
    "feed_paths": ("A spectrum's way to a subscriber, µs", feed_paths_table, "feed_paths"),
    "mqtt": ("MQTT, messages/s", mqtt_table, "mqtt"),
    "peers": ("Peers, µs of core time per frame", peers_table, "peers"),
}


def all_tables(results):
    """Every table that the results have figures for."""
    parts = [f"## {title}\n\n{render(results)}\n"
             for title, render, section in TABLES.values() if section is None or section in results]
    return "\n".join(parts)


def write_into(path, results):
    """Replaces what stands between <!-- bench:NAME --> and <!-- bench --> by NAME's table."""
    text = path.read_text()
    for name, (_, render, section) in TABLES.items():
        if section is not None and section not in results:
            continue
        between = re.compile(rf"(<!-- bench:{name} -->\n).*?(<!-- bench -->)", re.DOTALL)
        if not between.search(text):
            raise RuntimeError(f"{path} has no place for the table '{name}'")
        new = render(results)
        text = between.sub(lambda found, new=new: found[1] + new + "\n" + found[2], text)
    path.write_text(text)
