# SPDX-License-Identifier: MIT
"""The programs that are measured. A row of WORKLOADS is a name, what it is, and its command; what they read is made once."""
import json
import os
import random
import subprocess

import tools

HERE = os.path.dirname(os.path.abspath(__file__))
COMPILER_FLAGS = ["-O2", "-Wall", "-Wextra", "-D_GNU_SOURCE", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"]

PROGRAMS = {
    "chain": ["-pthread"],
    "churn": ["-pthread"],
    "live": ["-pthread"],
    "steps": [],
    "machine": ["-fno-builtin"],
    "worker": ["-pthread"],
    "count.so": ["-shared", "-fPIC", "-fno-builtin"],
}

JQ_FILTER = "map(select(.value > 40) | {id, name, tags, sum: (.at.x + .at.y)}) | sort_by(.name) | map(.sum) | add"

SQL = """\
CREATE TABLE orders(id INTEGER PRIMARY KEY, name TEXT, amount REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
	INSERT INTO orders SELECT i, 'name ' || (i * 7919 % 1000003), i * 0.5 FROM n;
CREATE INDEX orders_name ON orders(name);
SELECT count(*), sum(amount) FROM orders WHERE name LIKE 'name 12%';
"""

CXX_SOURCE = """\
#include <iostream>
#include <map>
#include <regex>

template <int N> struct value {{
	std::string text;
	bool operator<(const value &other) const {{ return text < other.text; }}
}};

template <int N> int words_count(const std::string &line)
{{
	std::map<value<N>, std::map<std::string, value<N>>> words;
	std::regex word("[a-z]+");
	for (std::sregex_iterator i(line.begin(), line.end(), word), end; i != end; ++i)
		words[value<N>{{i->str()}}][std::regex_replace(i->str(), word, "x")].text += "y";
	for (const auto &pair : words)
		std::cout << pair.first.text << ' ' << pair.second.size() << '\\n';
	return words.size();
}}

template <int N> struct all {{
	static int run(const std::string &line) {{ return words_count<N>(line) + all<N - 1>::run(line); }}
}};
template <> struct all<0> {{
	static int run(const std::string &) {{ return 0; }}
}};

int main()
{{
	std::wcout << std::regex_match(L"wide", std::wregex(L"w.*")) << all<{count}>::run("the words of a line");
}}
"""


class Workload:
    def __init__(self, name, text, command, environment=None, threads=0):
        self.name = name
        self.text = text
        self.command = command      # function of the Place
        self.environment = environment or {}
        self.threads = threads      # function of the Place: threads that the program makes, where those are what it is about


class Place:
    """Where the programs and what they read lie, and how large the work is."""

    def __init__(self, directory, quick):
        self.directory = directory
        self.quick = quick
        os.makedirs(directory, exist_ok=True)

    def path(self, name):
        return os.path.join(self.directory, name)

    def scale(self, full, quick):
        return quick if self.quick else full

    def build(self):
        for name, flags in PROGRAMS.items():
            source = os.path.join(HERE, name.split(".")[0] + ".c")
            if not is_newer(self.path(name), source):
                subprocess.run(["gcc", *COMPILER_FLAGS, "-o", self.path(name), source, *flags], check=True)

    def made(self, name, make):
        """The path of an input file; make(path) makes it if it is not there."""
        path = self.path(name)
        if not is_newer(path, __file__):
            make(path)
        return path


def is_newer(path, than):
    return os.path.exists(path) and os.path.getmtime(path) >= os.path.getmtime(than)


def python_command(place):
    return [tools.PYTHON, os.path.join(HERE, "objects.py"), str(place.scale(4, 2))]


def jq_make(path):
    choose = random.Random(1)
    rows = [{"id": number, "name": f"name {choose.randrange(10 ** 6)}", "value": choose.randrange(100),
             "tags": [f"t{choose.randrange(50)}" for _ in range(3)], "at": {"x": choose.random(), "y": choose.randrange(1000)}}
            for number in range(50000)]
    with open(path, "w") as file:
        json.dump(rows, file)


def sqlite_command(place):
    rows = place.scale(1000000, 300000)

    def make(path):
        with open(path, "w") as file:
            file.write(SQL.format(rows=rows))
    return ["sqlite3", "-bail", ":memory:", f".read {place.made(f'rows{rows}.sql', make)}"]


def cxx_command(place):
    count = place.scale(3, 1)

    def make(path):
        source = path.replace(".ii", ".cc")
        with open(source, "w") as file:
            file.write(CXX_SOURCE.format(count=count))
        subprocess.run(["g++", "-E", "-o", path, source], check=True)
    compiler = subprocess.run(["g++", "-print-prog-name=cc1plus"], check=True, capture_output=True, text=True).stdout.strip()
    return [compiler, "-O0", "-quiet", "-fpreprocessed", place.made(f"regex{count}.ii", make), "-o", "/dev/null"]


def chain(burst, threads=1):
    def command(place):
        pairs = place.scale(5000000, 1000000) // (4 if burst == 1 else 1)
        return [place.path("chain"), "--burst", str(burst), "--threads", str(threads), "--pairs", str(pairs)]
    return command


def churn_threads(place):
    return place.scale(20000, 5000)


def churn(at_once):
    return lambda place: [place.path("churn"), "--threads", str(churn_threads(place)), "--at-once", str(at_once)]


WORKLOADS = [
    Workload("start", "a program that does nothing: what a recording costs to begin and end", lambda place: ["/bin/true"]),
    Workload("python", "objects, dictionaries, strings; PYTHONMALLOC=malloc", python_command, {"PYTHONMALLOC": "malloc"}),
    Workload("objects", "the same with Python's own allocator of objects", python_command),
    Workload("jq", "map, select and sort over 6 MB of JSON",
             lambda place: ["jq", JQ_FILTER, place.made("rows.json", jq_make)]),
    Workload("sqlite", "a table of a million rows and its index, in memory", sqlite_command),
    Workload("cc1plus", "the C++ compiler at -O0 over <regex>, <iostream>, <map> and their use", cxx_command),
    Workload("chain-1", "30 frames deep, a wholly new stack for each pair", chain(1)),
    Workload("chain-4", "30 frames deep, a new stack every four pairs", chain(4)),
    Workload("chain-1000", "30 frames deep, nearly a fixed stack", chain(1000)),
    Workload("chain-4x2", "chain-4 in two threads", chain(4, 2)),
    Workload("churn", "threads of ten pairs, one after another", churn(1), threads=churn_threads),
    Workload("churn-2", "threads of ten pairs, two at a time", churn(2), threads=churn_threads),
]
