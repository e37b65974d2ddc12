#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/setup on machines that are made of stubs: nothing is missing; root; a user with and without sudo; no apt-get; packages that cannot be had.
A build directory that is older than the packages is configured again."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(os.environ["SOURCE"])
TOOLS = ("sh", "grep", "env", "dirname", "cat", "true")
failed = []


def expect(is_so, what):
    if not is_so:
        failed.append(what)


def machine(name, uid, installed=(), sudo=None, apt=True, refused=()):
    """A tree with scripts/setup, and a PATH with stubs only; apt-get writes its words to `log`."""
    tree = pathlib.Path(name).absolute()
    (tree / "scripts").mkdir(parents=True)
    (tree / "meson.build").write_text("")
    shutil.copy(SOURCE / "scripts/setup", tree / "scripts/setup")
    path = tree / "bin"
    path.mkdir()
    for tool in TOOLS:
        os.symlink(shutil.which(tool), path / tool)
    stubs = {"id": f"echo {uid}"}
    if apt:
        # Of "-W -f=... PACKAGE".
        stubs["dpkg-query"] = f'case " {" ".join(installed)} " in *" $3 "*) echo install ok installed ;; *) exit 1 ;; esac'
        unable = "".join(f'case " $* " in *" {package} "*) exit 100 ;; esac\n' for package in refused)
        stubs["apt-get"] = f'echo "$DEBIAN_FRONTEND $*" >> {tree}/log\n{unable}'
    if sudo is not None:
        stubs["sudo"] = f'echo "sudo $*" >> {tree}/log\n[ "$1" = -n ] || exit 99\nshift\n' + ('exec "$@"' if sudo else "exit 1")
    for stub, text in stubs.items():
        (path / stub).write_text(f"#!{path}/sh\n{text}\n")
        (path / stub).chmod(0o755)
    return tree


def setup(tree, *words):
    done = subprocess.run(["scripts/setup", *words], cwd=tree, env={"PATH": str(tree / "bin")}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    log = tree / "log"
    return done.returncode, done.stdout, log.read_text() if log.exists() else ""


def packages():
    """All packages of the goal build."""
    status, said, log = setup(machine("packages", 0), "--list", "build")
    expect(status == 2 and not log, f"--list: {status} {said} {log}")
    return said.split("--no-install-recommends")[1].split()


def check_build_depends():
    """Make deb installs all that debian/control asks for, under the names of packages."""
    status, said, _ = setup(machine("deb", 0), "--list", "deb")
    wanted = said.split("--no-install-recommends")[1].split() + ["debhelper-compat"]
    listed = re.search(r"(?m)^Build-Depends:((?:.*\n)(?:[ \t].*\n)*)", (SOURCE / "debian/control").read_text())[1]
    for choice in listed.split(","):
        names = [{"dh-sequence-python3": "dh-python"}.get(name, name) for name in re.findall(r"(?:^|\|)\s*([a-z0-9.+-]+)", choice)]
        expect(names and set(names) & set(wanted), f"make deb does not install {choice.strip()}")


def check_test_packages():
    """Those of npm and PyPI are asked for when all packages of Debian are there, and not by --list. What is wrong with them is left to the tests."""
    asked = setup(machine("bare", 0), "--list", "check")[1].split("--no-install-recommends")[1].split()
    expect("npm" in asked and "chromium" in asked, f"check: {asked}")
    tree = machine("npm", 0, asked)
    for name, text in {"npm": "exit 0", "cargo": "exit 0", "node": f'echo "node $*" >> {tree}/log; exit 1', "python3": f'echo "python3 $*" >> {tree}/log; exit 1'}.items():
        (tree / "bin" / name).write_text(f"#!{tree}/bin/sh\n{text}\n")
        (tree / "bin" / name).chmod(0o755)
    expect(setup(tree, "--list", "check") == (0, "", ""), "--list asks for no packages of npm or PyPI")
    status, said, log = setup(tree, "check")
    expect(status == 0 and "tests/viewer/packages.mjs" in log and "tests/python/packages.py" in log and "tests/live/pythons.py" in log, f"packages of npm and PyPI: {status} {said} {log}")


PROJECT = """project('one', 'c')
message('found: ' + meson.get_compiler('c').find_library('one', required: false).found().to_string())
"""


def check_new_packages():
    """A library that was not there before is looked for again when packages have come. Meson keeps what its compilers have compiled in vain, until a build begins anew."""
    for file in SOURCE.rglob("meson.build"):
        expect(not re.search(r"\.(links|compiles|has_\w+)\([^\n]*(-l|#include)", file.read_text()), f"{file}: a library is asked for in a way whose answer is kept")
    tree = pathlib.Path("new").absolute()
    (tree / "scripts").mkdir(parents=True)
    (tree / "meson.build").write_text(PROJECT)
    shutil.copy(SOURCE / "Makefile", tree)
    (tree / "scripts/setup").write_text("#!/bin/sh\n")
    (tree / "scripts/setup").chmod(0o755)
    libraries, status = tree / "libraries", tree / "status"
    libraries.mkdir()
    status.touch()

    def make(*words):
        done = subprocess.run(["make", "BUILD=build", f"PACKAGES={status.name}", *words], cwd=tree, env=dict(os.environ, LIBRARY_PATH=str(libraries)),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        expect(done.returncode == 0, f"make: {done.stdout}")
        return done.stdout
    said = make()
    expect("found: false" in said, f"without the library: {said}")
    subprocess.run(["ar", "rc", libraries / "libone.a"], check=True)
    said = make()
    expect("found:" not in said, f"nothing has changed: {said}")
    changed = (tree / "build/build.ninja").stat().st_mtime + 1
    os.utime(status, (changed, changed))
    said = make()
    expect("found: true" in said, f"with the library: {said}")


def main():
    build = packages()
    expect("meson" in build and "cmocka" not in build, f"build: {build}")
    expect(setup(machine("whole", 1000, build), "build") == (0, "", ""), "nothing is missing")
    some = [package for package in build if package != "libzydis-dev"]
    status, said, log = setup(machine("root", 0, some), "build")
    expect(status == 0 and "noninteractive install" in log and "libzydis-dev" in log and " meson" not in log and "sudo" not in log, f"root: {status} {said} {log}")
    status, said, log = setup(machine("sudo", 1000, some, sudo=True), "build")
    expect(status == 0 and "noninteractive install" in log and "sudo -n apt-get update" in log, f"sudo: {status} {said} {log}")
    for name, more in (("asks", {"sudo": False}), ("user", {})):
        status, said, log = setup(machine(name, 1000, some, **more), "build")
        expect(status == 2 and said == "xheap: packages are missing. Type: sudo apt-get install --no-install-recommends libzydis-dev\n", f"{name}: {status} {said}")
        expect("apt-get" not in log and "install" not in log, f"{name}: {log}")
    status, said, log = setup(machine("listed", 0, some), "--list", "build")
    expect(status == 2 and said == "xheap: packages are missing. Type: apt-get install --no-install-recommends libzydis-dev\n" and not log, f"listed: {status} {said} {log}")
    status, said, log = setup(machine("other", 1000, apt=False), "build")
    expect(status == 2 and "no apt-get" in said and "libzydis-dev" in said, f"no apt-get: {status} {said}")
    few = [package for package in build if package not in ("zstd", "meson")]
    status, said, log = setup(machine("refused", 0, few, refused=("zstd",)), "build")
    expect(status == 0 and "cannot install zstd" in said and "cannot install meson" not in said, f"a package that is not there: {status} {said} {log}")
    expect(setup(machine("wrong", 0), "nothing")[0] == 2, "an unknown goal")
    check_build_depends()
    check_test_packages()
    check_new_packages()
    dry = subprocess.run(["make", "-n", "-C", SOURCE, "BUILD=none"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    expect("scripts/setup --list build" in dry and "scripts/setup build" not in dry, f"make: {dry}")
    for goal in ("check", "demo"):
        dry = subprocess.run(["make", "-n", "-C", SOURCE, "BUILD=none", goal], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
        expect(any(f"scripts/setup {goal}" in line for line in dry.splitlines()[:3]), f"make {goal}: {dry}")


main()
for line in failed:
    print(line)
sys.exit(bool(failed))
