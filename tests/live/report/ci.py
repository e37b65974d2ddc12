#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The recipes of docs/ci.md, run as they stand there: each passes, fails when a limit is too low, and names the stack. And what varies, with a program that does."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from live import XHEAP, expect, run_tests, wait_for

SOURCE = pathlib.Path(os.environ["SOURCE"])
PAGE = (SOURCE / "docs/ci.md").read_text()
PYTEST_PYTHONS = ("python3", "/usr/bin/python3")
# For each recipe: the program that has to be there, the file with the limits, a limit that does not hold, and what its stack has.
RECIPES = {
    "ctest": ("ctest", "app.budget", "bytes self load <= 10", "app!load"),
    "meson": ("meson", "app.budget", "bytes self load <= 10", "app!load"),
    "cargo": ("cargo", "cargo/app.budget", "bytes in app::load <= 10", "app!app::load"),
    "pytest": ("pytest", "pytest/test_app.budget", "blocks in Py_BytesMain <= 10", "python3"),
}
FAILING = {"ctest": 8, "meson": 1, "cargo": 101, "pytest": 1}  # exit statuses of the tools


def environment():
    words = dict(os.environ, PATH=f"{pathlib.Path(XHEAP).parent}:{os.environ['PATH']}", PYTHONDONTWRITEBYTECODE="1")
    for name in ("MAKEFLAGS", "MFLAGS", "GITHUB_WORKSPACE"):
        words.pop(name, None)
    return words


def write_files():
    files = re.findall(r"<!-- file: (\S+) -->\n```\w*\n(.*?)```\n", PAGE, re.S)
    expect(len(files) >= 9, f"the page has only {len(files)} files")
    for name, text in files:
        path = pathlib.Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def commands(recipe):
    found = re.search(rf"<!-- run: {recipe} -->\n```sh\n(.*?)```\n", PAGE, re.S)
    expect(found, f"the page does not run {recipe}")
    return found[1]


def run(script, directory):
    return subprocess.run(["sh", "-ec", script], cwd=directory, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL)


def python_with_pytest():
    """The first python that has it, or None. Not from here, where a recipe is called so, too."""
    return next((python for python in PYTEST_PYTHONS
                 if shutil.which(python) and not subprocess.run([python, "-I", "-c", "import pytest"], stderr=subprocess.DEVNULL).returncode), None)


def try_recipe(recipe):
    tool, budget, limit, stack = RECIPES[recipe]
    if not (python_with_pytest() if tool == "pytest" else shutil.which(tool)):
        return f"not run: {tool} is not installed"
    script = commands(recipe)
    if recipe == "pytest":
        script = script.replace("python3 ", f"{python_with_pytest()} ")
    done = run(script, recipe)
    expect(done.returncode == 0, f"{recipe}: status {done.returncode}:\n{done.stdout[-3000:]}")
    path = pathlib.Path(budget)
    path.write_text(path.read_text() + limit + "\n")
    # Meson has a build directory then, and the budget in it is a copy.
    shutil.rmtree(f"{recipe}/build", ignore_errors=True)
    done = run(script, recipe)
    expect(done.returncode == FAILING[recipe], f"{recipe} with a limit that does not hold: status {done.returncode}:\n{done.stdout[-3000:]}")
    expect(limit in done.stdout and stack in done.stdout, f"{recipe} names neither {limit} nor {stack}:\n{done.stdout[-3000:]}")
    write_files()
    return "passed and failed as it should"


def ctest():
    return try_recipe("ctest")


def meson():
    return try_recipe("meson")


def cargo():
    return try_recipe("cargo")


def pytest():
    return try_recipe("pytest")


def github():
    """The commands of the workflow, in a shell that ends at the first failure, as a runner has it."""
    steps = re.findall(r"^ +- run: (.*)$", pathlib.Path("github/memory.yml").read_text(), re.M)
    expect(len(steps) == 3, f"{steps}")
    script = "cp ../app.c ../app.budget .\n" + "\n".join(steps)
    done = run(script, "github")
    expect(done.returncode == 0 and "::error" not in done.stdout, f"status {done.returncode}: {done.stdout}")
    done = run(f"cp ../app.c .; echo 'bytes self load <= 10' >>app.budget\n{steps[-1]}", "github")
    errors = [line for line in done.stdout.splitlines() if line.startswith("::error ")]
    expect(done.returncode == 1 and len(errors) == 1, f"status {done.returncode}: {done.stdout}")
    expect(re.match(r"::error file=app\.c,line=8,title=bytes self load <= 10::", errors[0]), f"{errors[0]}")
    if not shutil.which("xmllint"):
        return "the XML is not read by xmllint, which is not installed"
    expect(run("xmllint --noout memory.xml", "github").returncode == 0, "memory.xml is no XML")
    return "one error at the line of the call"


VARYING = r"""
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

void *volatile kept[64];

/* As many blocks as some bits of an address say: that varies with the layout. */
__attribute__((noinline)) void scatter(void)
{
	for (unsigned i = 0; i < 16 + ((uintptr_t)&kept >> 12 & 15); i++)
		kept[i] = malloc(100);
}

__attribute__((noinline)) void steady(void)
{
	for (unsigned i = 0; i < 10; i++)
		kept[32 + i] = malloc(100);
}

static void *work(void *unused)
{
	steady();
	return unused;
}

int main(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, work, NULL);
	scatter();
	pthread_join(thread, NULL);
	return 0;
}
"""


def check(*words):
    done = subprocess.run([XHEAP, "check", *words, "--format", "json"], stdout=subprocess.PIPE, text=True)
    return done.returncode, {limit["limit"].split(" <=")[0]: limit for limit in json.loads(done.stdout)["limits"]}


def varying():
    """A figure that varies is named; a budget that is learned from some runs has the room that they need, and fails where the program takes more."""
    if pathlib.Path("/proc/sys/kernel/randomize_va_space").read_text().strip() == "0":
        return "not run: addresses are not random here"
    pathlib.Path("varying.c").write_text(VARYING)
    subprocess.run(["cc", "-O1", "-g", "-fPIE", "-pie", "-o", "varying", "varying.c", "-pthread"], check=True)
    traces, figures = [], set()

    def record():
        trace = f"varying{len(traces)}.xht"
        subprocess.run([XHEAP, "record", "-q", "-o", trace, "./varying"], check=True)
        traces.append(trace)
        figures.add(check(trace, "--budget", "one.budget")[1]["blocks in scatter"]["figures"][0])
        return len(figures) > 2 and len(traces) > 3

    pathlib.Path("one.budget").write_text("blocks in scatter <= 31\nblocks in steady <= 10\n")
    wait_for("runs that differ", record)
    pathlib.Path("tight.budget").write_text(f"blocks in scatter <= {min(figures)} +1%\nblocks in steady <= 10\n")
    status, limits = check(*traces, "--budget", "tight.budget")
    expect(status == 0 and limits["blocks in scatter"]["state"] == "unstable" and limits["blocks in steady"]["state"] == "ok", f"{status}: {limits}")
    pathlib.Path("learned.budget").write_text("blocks in scatter <= 0\nblocks in steady <= 0\n")
    subprocess.run([XHEAP, "check", *traces, "--budget", "learned.budget", "--update"], check=True, stdout=subprocess.DEVNULL)
    for trace in traces:
        status, limits = check(trace, "--budget", "learned.budget")
        expect(status == 0 and {limit["state"] for limit in limits.values()} == {"ok"}, f"{trace} is not within what was learned from it: {limits}")
    scatter, steady = limits["blocks in scatter"], limits["blocks in steady"]
    expect(scatter["value"] == max(figures) and scatter["allowed"] >= 2 * max(figures) - min(figures), f"{scatter} of {figures}")
    expect(steady["allowed"] == 10 and not steady["variation_millionths"], f"{steady}")
    # More than what varies, in each run.
    text = VARYING.replace("16 +", f"{2 * (max(figures) - min(figures)) + 17} +").replace("kept[64]", "kept[128]").replace("32 + i", "96 + i")
    pathlib.Path("varying.c").write_text(text)
    subprocess.run(["cc", "-O1", "-g", "-fPIE", "-pie", "-o", "varying", "varying.c", "-pthread"], check=True)
    subprocess.run([XHEAP, "record", "-q", "-o", "more.xht", "./varying"], check=True)
    status, limits = check("more.xht", "--budget", "learned.budget")
    is_above = limits["blocks in scatter"]["figures"][0] > scatter["allowed"]
    expect(limits["blocks in scatter"]["state"] == ("over" if is_above else "ok") and status == is_above, f"{status}: {limits}")
    return f"{len(traces)} runs with {sorted(figures)} blocks"


GROWN = r"""
#include <stdlib.h>

void *volatile kept[256];
#define PART(name, first) __attribute__((noinline)) void name(int count) { for (int i = 0; i < count; i++) kept[(first) + i] = malloc(4096); }
PART(steady, 0)
PART(growing, 64)
#ifdef AFTER
PART(fresh, 128)
PART(small, 192)
#else
PART(gone, 128)
#endif

int main(void)
{
	steady(40);
#ifdef AFTER
	growing(23);
	fresh(20);
	small(2);
#else
	growing(20);
	gone(20);
#endif
	return 0;
}
"""


def functions(trace):
    """By function: bytes, outstanding bytes."""
    answer = subprocess.run([XHEAP, "heap", trace, "-frames", "-top", "1000000", "-format", "json"], stdout=subprocess.PIPE, text=True, check=True).stdout
    rows = json.loads(answer)["actions"][0]["rows"]
    return {f"{row['frame'].get('image')}!{row['frame'].get('symbol')}": (row["total_bytes"], row["outstanding_bytes"]) for row in rows if "symbol" in row["frame"]}


def compared():
    """With an earlier build: a function that grew by more than it may, one that is new and large, one that is new and small, one that is gone."""
    pathlib.Path("grown.c").write_text(GROWN)
    for name, words in (("before", []), ("after", ["-DAFTER"])):
        pathlib.Path(name).mkdir()
        subprocess.run(["cc", "-O1", "-g", *words, "-o", f"{name}/grown", "grown.c"], check=True)
        subprocess.run([XHEAP, "record", "-q", "-o", f"{name}.xht", f"{name}/grown"], check=True)
    before, after = functions("before.xht"), functions("after.xht")
    least = 65536
    for percent in (0, 10, 14.9, 15.1, 400):
        done = subprocess.run([XHEAP, "check", "before.xht", "after.xht", "--fail-above", f"{percent}%", "--by", "function", "--format", "json"], stdout=subprocess.PIPE, text=True)
        answer = json.loads(done.stdout)
        found = {(limit["self"][0][1:], limit["number"]): limit for limit in answer["limits"] if "self" in limit}
        wanted = {}
        for name in before.keys() | after.keys():
            for place, number in enumerate(("total_bytes", "outstanding_bytes")):
                old, new = before.get(name, (0, 0))[place], after.get(name, (0, 0))[place]
                if max(old, new) >= least:
                    value = max(old, least)
                    wanted[name, number] = (value, new, "over" if new > value + int(value * percent / 100) else "ok")
        expect({key: (limit["value"], limit["figures"][0], limit["state"]) for key, limit in found.items()} == wanted, f"{percent}%: {found}\nnot {wanted}")
        expect(done.returncode == (1 if answer["counts"]["over"] else 0), f"{percent}%: status {done.returncode}")
        if percent == 10:
            states = {name.partition("!")[2]: limit["state"] for (name, number), limit in found.items() if number == "total_bytes"}
            expect(states == {"steady": "ok", "growing": "over", "fresh": "over", "gone": "ok"}, f"{states}")
            stacks = [stack for limit in answer["limits"] if limit["number"] == "total_bytes" and "self" not in limit for stack in limit.get("stacks", [])]
            shown = {stack["stack"][0]["symbol"]: (stack["before"], stack["figure"]) for stack in stacks}
            expect(not stacks or shown == {"fresh": (0, 81920), "growing": (81920, 94208), "small": (0, 8192)}, f"{shown}")
            expect(shown if answer["limits"][0]["state"] == "over" else not shown, f"{answer['limits'][0]}")
    same = subprocess.run([XHEAP, "check", "before.xht", "before.xht", "--fail-above", "0%", "--by", "function", "--least", "0"], stdout=subprocess.PIPE)
    expect(same.returncode == 0, "a trace has more than itself")
    # A budget that is learned from the build before has no limit of a new function. What its functions have within their limits is not shown first.
    subprocess.run([XHEAP, "check", "before.xht", "--budget", "own.budget", "--update"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    words = [XHEAP, "check", "after.xht", "--budget", "own.budget"]
    done = subprocess.run([*words, "--format", "json"], stdout=subprocess.PIPE, text=True)
    limits = {limit["limit"].split(" <=")[0]: limit for limit in json.loads(done.stdout)["limits"]}
    expect(done.returncode == 1 and limits["bytes self steady"]["state"] == "ok", f"learned: {list(limits)}")
    shown = [stack["stack"][0]["symbol"] for stack in limits["bytes"]["stacks"]]
    expect(shown == ["fresh", "growing", "small"], f"the stacks of all bytes are {shown}")
    first = subprocess.run(words, stdout=subprocess.PIPE, text=True).stdout.split("\n")[0]
    expect(first == "over  bytes self growing <= 81,920 B", first)
    # The new build has another file name: that name is in the answer, and the functions stand before the totals that they are in.
    shutil.copy("after/grown", "grown.new")
    subprocess.run([XHEAP, "record", "-q", "-o", "new.xht", "./grown.new"], check=True)
    for paths in (["before.xht", "new.xht"], ["before.xht", "before.xht", "--", "new.xht", "new.xht"]):
        words = [XHEAP, "check", *paths, "--fail-above", "5%", "--by", "function"]
        said = subprocess.run(words, stdout=subprocess.PIPE, text=True).stdout
        limits = [line[len("over  "):] for line in said.split("\n") if line.startswith("over  ")]
        named = [" self " in limit for limit in limits]
        expect(limits[0].startswith('bytes self "=grown.new!fresh"') and "grown!" not in said, f"{paths}: {said}")
        expect(named == sorted(named, reverse=True) and not all(named), f"{paths}: {limits}")
        answer = json.loads(subprocess.run([*words, "--format", "json"], stdout=subprocess.PIPE, text=True).stdout)
        ends = [[trace["trace"] for trace in answer[side]] for side in ("baseline", "traces")]
        expect(sum(ends, []) == [path for path in paths if path != "--"], f"{ends}")
        values = {limit["limit"].split(" <=")[0]: (limit["value"], limit["most"]) for limit in answer["limits"]}
        expect(values['bytes self "=grown.new!growing"'] == (81920, 94208), f"{values}")
    # The program of the first trace is replaced by the second one.
    subprocess.run(["mv", "before/grown", "grown"], check=True)
    shutil.copy("after/grown", "before/grown")
    words = [XHEAP, "check", "before.xht", "after.xht", "--fail-above", "400%"]
    expect(subprocess.run(words, stdout=subprocess.DEVNULL).returncode == 0, "totals need no names")
    refused = subprocess.run([*words, "--by", "function"], stderr=subprocess.PIPE, text=True)
    expect(refused.returncode == 2 and "before.xht has no names for grown" in refused.stderr, f"status {refused.returncode}: {refused.stderr}")
    # What a stack had before is not known then, so none seems to be new.
    words[-1] = "0%"
    told = subprocess.run(words, stdout=subprocess.PIPE, text=True)
    expect(told.returncode == 1 and "before.xht has no names for grown" in told.stdout and "the largest ones" in told.stdout and ", before" not in told.stdout, told.stdout)
    answer = json.loads(subprocess.run([*words, "--format", "json"], stdout=subprocess.PIPE, text=True).stdout)
    stacks = [stack for limit in answer["limits"] for stack in limit.get("stacks", [])]
    expect(answer["without_names"] == {"trace": "before.xht", "image": "grown"} and stacks and not any("before" in stack for stack in stacks), f"{answer}")
    words[-1] = "400%"
    shutil.copy("grown", "before/grown")
    subprocess.run([XHEAP, "symbols", "before.xht"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    shutil.copy("after/grown", "before/grown")
    kept = subprocess.run([*words, "--by", "function"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    expect(kept.returncode == 0 and "grown!gone" in kept.stdout, f"with names that are kept: status {kept.returncode}: {kept.stdout}")
    return f"{len(wanted)} limits of functions"


write_files()
sys.exit(run_tests(ctest, meson, cargo, pytest, github, varying, compared))
