# SPDX-License-Identifier: MIT
"""Packages of PyPI that only tests need, installed once into the build's folder, for one version of Python. By itself this program installs those of the package's tests, or of the list that it is given. A test
asks nothing of the network: what it does not find is a reason to skip."""
import functools
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
WANTED = HERE / "requirements.txt"
INSTALL_SECONDS = 600  # a registry that does not answer must not hold up all tests


@functools.lru_cache(maxsize=None)
def version(python):
    return subprocess.run([python, "-c", "import sys; print(sys.version.split()[0])"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def folder(wanted=WANTED, python=sys.executable):
    """Where those of the list `wanted` are, or would be."""
    build = pathlib.Path(os.environ.get("BUILD", HERE.parents[1] / "build")).resolve()
    mark = hashlib.sha256(wanted.read_bytes() + version(python).encode()).hexdigest()[:12]
    return build / "python" / f"packages-{mark}"


def use(wanted=WANTED):
    """Make them importable, here and in Pythons that this one starts. False: they were not installed."""
    if not folder(wanted).exists():
        return False
    sys.path.append(str(folder(wanted)))
    os.environ["PYTHONPATH"] = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(folder(wanted))])
    return True


def install(wanted=WANTED, python=sys.executable):
    """Why not, or nothing. Several may install at once: each in a folder of its own, and the first one stays."""
    to = folder(wanted, python)
    if to.exists():
        return ""
    to.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=to.parent, prefix="install-") as made:
        try:
            done = subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:", "--retries", "2",
                                   "--target", f"{made}/packages", "-r", wanted], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=INSTALL_SECONDS)
        except subprocess.TimeoutExpired:
            return f"pip took more than {INSTALL_SECONDS} s"
        if done.returncode:
            return (done.stdout.strip().splitlines() or ["no reason given"])[-1]
        if not to.exists():
            os.rename(f"{made}/packages", to)
    return ""


if __name__ == "__main__":
    reason = install(*map(pathlib.Path, sys.argv[1:]))
    if reason:
        print(f"xheap: no packages for tests of the Python package: {reason}", file=sys.stderr)
