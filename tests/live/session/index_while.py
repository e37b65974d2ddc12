#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""record --index: the index that is there when a recording ends is, byte for byte, the one that the first question makes; and what becomes of it when
somebody is killed, forks, or does not want to wait."""
import glob
import os
import shutil
import signal
import subprocess
import sys
import time

from live import LONG_SECONDS, PATIENCE, PROGRAMS, XHEAP, expect, info, is_whole, processor_ticks, run_tests, same_index, wait_for, xheap

# Small traces are to have indexes, too; a look is taken at half a million events only.
os.environ["XHEAP_INDEX_EVENTS"] = "10000"
os.environ["PYTHONMALLOC"] = "malloc"
PYTHON = "/usr/bin/python3"
TRACE, CACHE = "made.xht", os.path.abspath("cache")
os.environ["XDG_CACHE_HOME"] = CACHE
# So many strings are made and forgotten, so often; then it waits for a line, and makes some more.
MAKING = """import sys
def make(rounds):
    for round in range(rounds):
        kept = [str(number) for number in range(100000)]
make(%d)
print("ready", flush=True)
sys.stdin.readline()
make(2)
"""


def remove():
    if os.path.exists(TRACE):
        os.unlink(TRACE)
    shutil.rmtree(CACHE, ignore_errors=True)


def index():
    """The path of the only index; None: there is none."""
    found = glob.glob(f"{CACHE}/xheap/indexes/*")
    expect(len(found) < 2, f"several: {found}")
    return found[0] if found else None


def record(*command):
    remove()
    return xheap("record", "--index", "-o", TRACE, *command, stdin=subprocess.DEVNULL)


def check_same(said):
    """The index is there, and as it would be; record, or stop, has made the survey, too."""
    made = index()
    expect("the trace has an index" in said and made, f"no index: {said}")
    os.rename(made, "live.index")
    xheap("heap", TRACE, "-totals")
    size = os.path.getsize("live.index")
    expect(same_index("live.index", made), f"the index of {size} bytes is another one than a question makes")
    os.rename("live.index", made)
    with open(made, "rb") as file:
        kept = file.read()
    expect(xheap("report", TRACE).count("Peak"), "no report")
    with open(made, "rb") as file:
        expect(file.read() == kept, "the first report had to survey all blocks")
    return f"{size} bytes"


# ---- the same index ----

def python():
    return check_same(record(PYTHON, "-c", MAKING % 10))


def objects():
    """A report counts each object of Python by its own line, and so do the survey and the last lines, which a run below a second does not have."""
    del os.environ["PYTHONMALLOC"]
    try:
        said = record("--python-objects", PYTHON, "-c", MAKING % 3 + "import time\ntime.sleep(1.5)")
    finally:
        os.environ["PYTHONMALLOC"] = "malloc"
    expect("from make" in said, said)
    return check_same(said)


def threads():
    return check_same(record(os.path.join(PROGRAMS, "churn"), "4", "200000"))


def sqlite():
    if not shutil.which("sqlite3"):
        return "skipped, there is no sqlite3"
    return check_same(record("sqlite3", ":memory:", "create table t(a, b); with recursive c(x) as (select 1 union all select x + 1 from c where x < 300000) "
                             "insert into t select x, 'row' || x from c; select count(*) from t where b like '%9%';"))


def compiler():
    found = subprocess.run(["gcc", "-print-prog-name=cc1plus"], stdout=subprocess.PIPE, text=True).stdout.strip() if shutil.which("gcc") else ""
    if not os.path.exists(found):
        return "skipped, there is no cc1plus"
    with open("source.cc", "w") as file:
        file.write("#include <regex>\n#include <map>\nstd::map<int, std::regex> map;\nbool find(const char *text) { return std::regex_match(text, map[1]); }\n")
    if subprocess.run(["gcc", "-E", "-o", "source.ii", "source.cc"], stderr=subprocess.DEVNULL).returncode:
        return "skipped, there are no headers of C++"
    return check_same(record(found, "-O0", "-quiet", "-fpreprocessed", "source.ii", "-o", "/dev/null"))


def executed():
    """Other programs, one after the other, while the first one goes on."""
    return check_same(record(PYTHON, "-c", f"import subprocess\nfor i in range(6):\n    subprocess.run(['/bin/ls'], stdout=subprocess.DEVNULL)\n"
                             "    kept = [str(number) for number in range(100000)]\n"))


def attached():
    """Earlier blocks, and a session."""
    remove()
    target = subprocess.Popen([PYTHON, "-c", "kept = [str(number) for number in range(200000)]\n" + MAKING % 12], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    wait_for("work", lambda: processor_ticks(target.pid) > 10)
    name = f"index-{os.getpid()}"
    xheap("start", name, "--index", "-o", TRACE, "-p", target.pid)
    target.stdout.readline()
    target.communicate("go on\n", timeout=LONG_SECONDS)
    return check_same(xheap("stop", name))


# ---- while it is recorded ----

def process_of(program, words=""):
    """The pid of the process with this program and words in its command line."""
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        pid = int(path.split("/")[2])
        try:
            command = open(path, "rb").read().decode(errors="replace").split("\0")
            status = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if command[0] == program and words in " ".join(command) and status[0] != "Z":
            return pid
    return None


def written(pid):
    """Bytes of the index that the process has written to its file without a name."""
    for path in glob.glob(f"/proc/{pid}/fd/*"):
        try:
            if os.path.basename(os.readlink(path)).startswith("#") or "(deleted)" in os.readlink(path):
                return os.stat(path).st_size
        except OSError:
            continue
    return 0


class Recording:
    """Of a program that has made millions of events, most of which are in the index, and waits."""
    def __init__(self):
        remove()
        self.mark = f"# {os.getpid()}.{time.monotonic_ns()}"
        self.command = subprocess.Popen([XHEAP, "record", "--index", "-o", TRACE, PYTHON, "-c", MAKING % 14 + self.mark], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.command.stdout.readline()
        self.worker = wait_for("process that makes the index", self.indexing)
        self.logger = int(open(f"/proc/{self.worker}/stat").read().rsplit(")", 1)[1].split()[1])
        self.target = wait_for("target", self.running)
        wait_for("index that grows", lambda: written(self.worker) > 1 << 20, 60)

    def indexing(self):
        return process_of("xheap", f"--index {os.path.abspath(TRACE)}")

    def running(self):
        return process_of(PYTHON, self.mark)

    def end(self, text="go on\n"):
        return self.command.communicate(text, timeout=LONG_SECONDS)[1]

    def is_gone(self):
        until = time.monotonic() + 20 * PATIENCE
        while found := self.indexing():
            states = {pid: open(f"/proc/{pid}/stat").read().split()[:5] for pid in (found, self.logger) if os.path.exists(f"/proc/{pid}/stat")}
            expect(time.monotonic() < until, f"the process that makes the index does not end: it is {self.worker} of {self.logger}; {states}")
            time.sleep(0.02)
        return not index()


def followed():
    """It is mostly there before the recording ends."""
    recording = Recording()
    grown = written(recording.worker)
    said = check_same(recording.end())
    return f"{grown} of {said} before the end"


def target_killed():
    recording = Recording()
    os.kill(recording.target, signal.SIGKILL)
    return check_same(recording.end(""))


def logger_killed():
    recording = Recording()
    os.kill(recording.logger, signal.SIGKILL)
    expect(recording.is_gone(), "an index is left of a logger that was killed")
    recording.end()
    expect("recovered" in xheap("recover", TRACE, status=None) or info(TRACE), "nothing is recovered")
    expect(is_whole(info(TRACE)), "what was recovered is cut")


def unwanted(how):
    """The index takes its time, and who waits for it does not want to."""
    recording = Recording()
    os.kill(recording.worker, signal.SIGSTOP)
    recording.command.stdin.write("go on\n")
    recording.command.stdin.flush()
    wait_for("end of the target", lambda: not recording.running())
    wait_for("end of the trace", lambda: is_whole(info(TRACE)))
    expect(recording.command.poll() is None, "nobody waited for the index")
    wait_for("end of who records", lambda: recording.command.send_signal(how) or recording.command.poll() is not None, pause=0.2)
    said = recording.command.communicate(timeout=LONG_SECONDS)[1]
    expect(recording.is_gone(), "an index is there that nobody waited for")
    expect(info(TRACE)["complete"], "the trace is not complete")
    return recording.command.returncode, said


def interrupted():
    status, said = unwanted(signal.SIGINT)
    expect(status == 0 and "the wait for it was ended" in said and "events of 1 process" in said, f"status {status}: {said}")


def killed():
    status, _ = unwanted(signal.SIGKILL)
    expect(status == -signal.SIGKILL, f"status {status}")


def forked():
    """The fork comes first, and the children's blocks are their parent's."""
    return check_same(record(PYTHON, "-c", "import os\npid = os.fork()\nkept = [str(number) for number in range(100000)]\nif pid:\n    os.waitpid(pid, 0)\n"
                             "else:\n    os._exit(0)\nfor i in range(20):\n    kept = [str(number) for number in range(100000)]\n"))


def forked_late():
    """What was matched before is matched again for its history. The index has the same rows, perhaps at other places."""
    said = record(PYTHON, "-c", MAKING % 12 + "import os\npid = os.fork()\nif not pid:\n    make(3)\n    os._exit(0)\nos.waitpid(pid, 0)\nmake(3)\n")
    made = index()
    expect("the trace has an index" in said and made, f"no index: {said}")
    asked = (("heap", TRACE, "-stacks", "--format", "json"), ("heap", TRACE, "-frames", "--format", "json"), ("info", TRACE, "--format", "json"))
    answers = [xheap(*words) for words in asked]
    os.unlink(made)
    expect(answers == [xheap(*words) for words in asked] and index() == made, "the answers are others than those of an index that a question makes")


def sampled():
    return check_same(record("--sample", "64", PYTHON, "-c", MAKING % 12))


# ---- where there is none ----

def small():
    said = record("/bin/true")
    expect("index" not in said and not index(), said)


def refused():
    for words in (["--file-mode", "circular", "--max-file", "4M"], ["--keep", "live"]):
        said = xheap("record", "--index", *words, "-o", TRACE, "/bin/true", status=2)
        expect("--index" in said, said)


sys.exit(run_tests(python, objects, threads, sqlite, compiler, executed, attached, followed, target_killed, logger_killed, interrupted, killed, forked, forked_late, sampled, small, refused))
