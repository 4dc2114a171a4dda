#!/usr/bin/env python3
"""Instructions per frame and per packet, counted by callgrind and compared with the committed
baseline: a figure that no other program on the machine can touch. More than 5 % above it fails.

Only the program's own instructions count (kernels on AVX2, engine, sealing), not those of libraries
(FFTW, libdeflate, ISA-L, libc), which choose their code by the CPU.

    instructions.py --program build/release/bin/bench_instruction_count [--update]
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

BASELINE = Path(__file__).with_name("instructions.json")
TOLERANCE = 0.05
SKIPPED = 77
COST_LINE = re.compile(r"[+*\-\d]\S* (\d+)$")


def own_instructions(profile, program):
    """Sums what callgrind charged to functions of the program's own file."""
    total = 0
    in_program = False
    objects = {}  # callgrind names each file once and then says its number
    inclusive_next = False
    for line in profile.read_text().splitlines():
        if found := re.match(r"c?ob=\((\d+)\)(?: (.*))?", line):
            number, path = found.groups()
            objects.setdefault(number, path)
            if line.startswith("ob="):
                in_program = Path(objects[number]).name == program.name
        elif line.startswith("calls="):
            inclusive_next = True  # the next line is what the callee cost
        elif cost := COST_LINE.match(line):
            if in_program and not inclusive_next:
                total += int(cost.group(1))
            inclusive_next = False
    return total


def title_of(profile):
    return re.search(r"^desc: Trigger: Client Request: (.*)$", profile.read_text(), re.M)


def count(program):
    """name -> instructions per unit of work."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--quiet",
             f"--callgrind-out-file={folder}/out", str(program)],
            stdout=subprocess.PIPE, check=False,
        )
        if done.returncode == SKIPPED:
            sys.exit(SKIPPED)
        if done.returncode != 0:
            sys.exit(f"instructions: {program} ended with code {done.returncode}")
        units = json.loads(done.stdout)
        counted = {}
        for profile in Path(folder).iterdir():
            if title := title_of(profile):
                name = title.group(1)
                counted[name] = round(own_instructions(profile, program) / units[name])
    if counted.keys() != units.keys():
        sys.exit(f"instructions: callgrind counted {sorted(counted)}, not {sorted(units)}")
    return dict(sorted(counted.items()))


def compare(counted, baseline):
    """Prints a table; the names that have become worse, or that the baseline lacks."""
    failed = []
    for name in sorted(counted.keys() | baseline.keys()):
        now, before = counted.get(name), baseline.get(name)
        if now is None or before is None:
            failed.append(name)
            print(f"{name:45} {before!s:>10} {now!s:>10}  not in both: --update")
            continue
        change = now / before - 1
        worse = change > TOLERANCE
        failed += [name] if worse else []
        remark = "WORSE" if worse else "better: --update" if change < -TOLERANCE else ""
        print(f"{name:45} {before:10} {now:10}  {change:+7.1%}  {remark}")
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--update", action="store_true", help="make the counts the baseline")
    given = parser.parse_args()
    counted = count(given.program)
    if given.update:
        BASELINE.write_text(json.dumps(counted, indent=2) + "\n")
    failed = compare(counted, json.loads(BASELINE.read_text()))
    if failed:
        sys.exit(f"instructions: more than {TOLERANCE:.0%} above the baseline: {', '.join(failed)}"
                 "; if that is wanted, run it with --update and commit bench/instructions.json")


if __name__ == "__main__":
    main()
