#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What xheap export writes, in the tools that it is for: pprof, callgrind_annotate, heaptrack_print, OpenTelemetry's own definitions. They print the figures of xheap heap. tests/viewer/export.mjs has
the tools with a page, or of npm."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(os.environ["SOURCE"]) / "tests/python"))
import packages  # noqa: E402

XHEAP, BUILD, SOURCE = os.environ["XHEAP"], pathlib.Path(os.environ["BUILD"]), pathlib.Path(os.environ["SOURCE"])
TRACES = [SOURCE / "tests/golden/traces" / name for name in ("libstdcxx.xht", "rust.xht", "c.xht")]
# A version of its own, so that the test stays the same.
PPROF = "github.com/google/pprof@v0.0.0-20261105003125-4bf881d7fb0b"
SKIP = 77
missing = []


def expect(condition, what):
    if not condition:
        sys.exit(what)


def run(*words, **more):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    expect(done.returncode == 0, f"{words}: {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def export(trace, name, end=""):
    run(XHEAP, "export", trace, "-format", name, "-o", f"out.{name}{end}")
    return f"out.{name}{end}"


def figures_of(trace):
    report = json.loads(run(XHEAP, "heap", trace, "-frames", "-inclusive", "-format", "json"))
    return report["totals"], {(row["frame"].get("symbol") or f"{row['frame']['image']}+{row['frame']['offset']}"): row for row in report["actions"][0]["rows"]}


def pprof_program():
    """Built once, and kept in the build; NULL with a reason if there is no Go, or its proxy does not answer."""
    kept = BUILD / "export-tools/pprof"
    if not kept.exists():
        if not shutil.which("go"):
            missing.append("pprof: there is no Go")
            return None
        made = pathlib.Path("go").absolute()
        environment = dict(os.environ, GOBIN=str(made), GOFLAGS="-p=1", HOME=os.environ.get("HOME") or str(made))
        done = subprocess.run(["go", "install", PPROF], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            missing.append(f"pprof: go install says {done.stdout.strip().splitlines()[-1:]}")
            return None
        kept.parent.mkdir(exist_ok=True)
        shutil.move(made / "pprof", kept)
    return kept


def check_pprof(trace):
    """Sums of all samples, and of each function with what it calls."""
    program = pprof_program()
    if not program:
        return
    totals, functions = figures_of(trace)
    path = export(trace, "pprof")
    for index, figure in (("alloc_objects", "total_count"), ("alloc_space", "total_bytes"), ("inuse_objects", "outstanding_count"), ("inuse_space", "outstanding_bytes")):
        said = run(program, "-top", "-cum", "-nodecount=100000", "-nodefraction=0", "-unit=B", f"-sample_index={index}", "-functions", path)
        total = re.search(r"of (\d+)(?:B)? total", said)
        expect(total and int(total[1]) == totals[figure], f"pprof {trace.name}: {index} of {total and total[0]}, not {totals[figure]}")
        shown = {}
        for cumulated, name in re.findall(r"^ *\S+ +\S+ +\S+ +(\d+)B? +\S+ +(.*)$", said, re.M):
            shown[name.removesuffix(" (inline)").removesuffix(" (partial-inline)")] = int(cumulated)
        checked = [name for name in functions if name in shown]
        expect(len(checked) > 2, f"pprof {trace.name}: no function of {list(shown)[:5]} is known")
        for name in checked:
            expect(shown[name] == functions[name][figure], f"pprof {trace.name}: {name} has {index} {shown[name]}, not {functions[name][figure]}")
    expect("inuse_space" in run(program, "-top", path), "pprof: inuse_space is not the default")


def check_callgrind(trace):
    program = shutil.which("callgrind_annotate")
    if not program:
        missing.append("there is no callgrind_annotate of Valgrind")
        return
    totals, functions = figures_of(trace)
    said = run(program, "--inclusive=yes", "--threshold=100", "--show-percs=no", "--auto=no", export(trace, "callgrind"))
    events = re.search(r"^Events recorded: +(.*)$", said, re.M)[1].split()
    keys = [event.replace("Bytes", "_bytes").replace("Blocks", "_count").lower() for event in events]
    whole = [int(word.replace(",", "")) for word in re.search(r"^(.*?) +PROGRAM TOTALS$", said, re.M)[1].split()]
    expect(dict(zip(keys, whole)) == {key: totals[key] for key in keys}, f"callgrind_annotate {trace.name}: totals {whole} of {keys}")
    checked = 0
    for line in said.splitlines():
        found = re.match(r"((?: *[\d,.]+){6}) +\S*?:(.*) \[.*\]$", line)
        if found and found[2] in functions:
            numbers = [int(word.replace(",", "").replace(".", "0")) for word in found[1].split()]
            expect(numbers == [functions[found[2]][key] for key in keys], f"callgrind_annotate {trace.name}: {line}")
            checked += 1
    expect(checked > 2, f"callgrind_annotate {trace.name}: no known function in {said[-300:]}")


def check_heaptrack(trace):
    program = shutil.which("heaptrack_print")
    if not program:
        missing.append("there is no heaptrack_print")
        return
    totals, _ = figures_of(trace)
    said = run(program, "-f", export(trace, "heaptrack"))
    for end in (".gz", ".zst"):
        again = run(program, "-f", export(trace, "heaptrack", end))
        expect(said.split("\n", 1)[1] == again.split("\n", 1)[1].replace(end, ""), f"heaptrack_print {trace.name}: another answer about {end}: {again[:300]}")
    number = {name: re.search(rf"^{name}: (\S+)", said, re.M)[1] for name in ("calls to allocation functions", "peak heap memory consumption", "total memory leaked")}
    expect(int(number["calls to allocation functions"]) == totals["total_count"], f"heaptrack_print {trace.name}: {number}")
    for name, figure in (("peak heap memory consumption", "peak_bytes"), ("total memory leaked", "outstanding_bytes")):
        # Of three or four digits: "154.40K", of thousands.
        value, unit = re.match(r"([\d.]+)([BKMG])", number[name]).groups()
        factor = {"B": 1, "K": 1e3, "M": 1e6, "G": 1e9}[unit]
        expect(abs(float(value) * factor - totals[figure]) <= 0.005 * factor + 1e-6, f"heaptrack_print {trace.name}: {name} {number[name]}, not {totals[figure]}")
    expect("main" in said, f"heaptrack_print {trace.name} names no main")


def check_tables(dictionary, what):
    """Row 0 of each table is empty; no row is there twice, and each is referred to."""
    def packed(rows):
        return [row.SerializeToString(deterministic=True) for row in rows]

    used = {name: {0} for name in ("mapping", "location", "function", "attribute", "stack")}
    tables = {name: packed(getattr(dictionary, f"{name}_table")) for name in used}
    for stack in dictionary.stack_table:
        used["location"].update(stack.location_indices)
    for location in dictionary.location_table:
        used["mapping"].add(location.mapping_index)
        used["function"].update(line.function_index for line in location.lines)
    for mapping in dictionary.mapping_table:
        used["attribute"].update(mapping.attribute_indices)
    del used["stack"]
    for name, rows in tables.items():
        expect(rows and rows[0] == b"", f"{what}: row 0 of {name} is {rows[:1]}")
        expect(name == "location" or len(set(rows)) == len(rows), f"{what}: rows of {name} are there twice")
    for name, known in used.items():
        expect(known == set(range(len(tables[name]))), f"{what}: {name} has {len(tables[name])} rows, used are {sorted(known)}")
    texts = dictionary.string_table
    expect(texts[0] == "" and len(set(texts)) == len(texts), f"{what}: texts {texts[:3]}")
    expect(len(dictionary.link_table) == 1 and not any(dictionary.link_table[0].trace_id), f"{what}: {dictionary.link_table}")


def check_otlp(trace):
    """Sums of all samples, and of each function with what it calls."""
    if not packages.use():
        missing.append("there is no opentelemetry-proto: tests/python/packages.py installs it")
        return
    from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2
    totals, functions = figures_of(trace)
    request = profiles_service_pb2.ExportProfilesServiceRequest.FromString(pathlib.Path(export(trace, "otlp")).read_bytes())
    dictionary, texts = request.dictionary, request.dictionary.string_table
    check_tables(dictionary, f"otlp {trace.name}")
    profiles = request.resource_profiles[0].scope_profiles[0].profiles
    attributes = {one.key: one.value for one in request.resource_profiles[0].resource.attributes}
    expect(attributes["service.name"].string_value and attributes["process.pid"].int_value, f"otlp {trace.name}: resource {attributes}")
    types = [(texts[one.sample_type.type_strindex], texts[one.sample_type.unit_strindex]) for one in profiles]
    expect(types == [("alloc_space", "bytes"), ("alloc_objects", "count"), ("inuse_space", "bytes"), ("inuse_objects", "count")], f"otlp {trace.name}: {types}")
    for profile, figure in zip(profiles, ("total_bytes", "total_count", "outstanding_bytes", "outstanding_count")):
        expect(texts[profile.period_type.type_strindex] == "memory" and profile.period and len(profile.profile_id) == 16, f"otlp {trace.name}: {profile.period_type}")
        expect(sum(sample.values[0] for sample in profile.samples) == totals[figure], f"otlp {trace.name}: {figure}")
        shown = dict.fromkeys(functions, 0)
        for sample in profile.samples:
            lines = [line for at in dictionary.stack_table[sample.stack_index].location_indices for line in dictionary.location_table[at].lines]
            for name in {texts[dictionary.function_table[line.function_index].name_strindex] for line in lines} & set(shown):
                shown[name] += sample.values[0]
        checked = [name for name in functions if shown[name]]
        expect(len(checked) > 2, f"otlp {trace.name}: no function of {list(functions)[:5]} is known")
        for name in checked:
            expect(shown[name] == functions[name][figure], f"otlp {trace.name}: {name} has {figure} {shown[name]}, not {functions[name][figure]}")


def main():
    for trace in TRACES:
        for check in (check_pprof, check_otlp, check_callgrind, check_heaptrack):
            check(trace)
    for reason in sorted(set(missing)):
        print(reason)
    sys.exit(SKIP if missing else 0)


main()
