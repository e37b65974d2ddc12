# SPDX-License-Identifier: MIT
"""What tests with an emulated machine share: its kernel, its files, and what is not here.

The kernel is Debian's for clouds, which is fetched once into the build's directory and only unpacked there; KERNEL=FILE takes another one, with devtmpfs and a
serial port built in. KVM is not asked for: on some machines it hangs."""
import os
import pathlib
import re
import shutil
import subprocess

from live import BUILD

KERNEL_PACKAGE = "linux-image-cloud-amd64"


class Missing(Exception):
    """What is not here."""


def run(*command, **more):
    done = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode:
        raise Missing(f"{command[0]}: {done.stdout.strip().splitlines()[-1:]}")
    return done.stdout


def find_program(name):
    path = shutil.which(name)
    if not path:
        raise Missing(f"no {name}")
    return pathlib.Path(path)


def find_kernel():
    if os.environ.get("KERNEL"):
        return pathlib.Path(os.environ["KERNEL"])
    folder = pathlib.Path(BUILD) / "tests/kernel"
    if not (folder / "boot").is_dir():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        package = re.search(r"Depends: (linux-image-\S+)", run(find_program("apt-cache"), "depends", KERNEL_PACKAGE))
        if not package:
            raise Missing(f"no package {KERNEL_PACKAGE}")
        run(find_program("apt-get"), "-q", "download", package[1], cwd=folder)
        run(find_program("dpkg-deb"), "-x", next(folder.glob("*.deb")), folder / "unpacked")
        (folder / "unpacked/boot").rename(folder / "boot")
        shutil.rmtree(folder / "unpacked")
    return next((folder / "boot").glob("vmlinuz-*"))


def libraries(path):
    """What the loader takes for it, by the names that it looks for."""
    told = subprocess.run(["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    return re.findall(r"(/\S+) \(0x", told)


def archive(path, contents):
    """A file system as the kernel takes it: cpio, newc. contents: {name: bytes of an executable, or the text that a link has}."""
    folders = sorted({str(parent) for name in contents for parent in pathlib.PurePath(name).parents if str(parent) != "/"} | {"/proc", "/sys", "/dev", "/etc"})
    console = ("/dev/console", 0o20600, b"", (5, 1))
    entries = [*((folder, 0o40755, b"", (0, 0)) for folder in folders), console,
               *((name, *((0o120777, data.encode()) if isinstance(data, str) else (0o100755, data)), (0, 0)) for name, data in contents.items()), ("/TRAILER!!!", 0, b"", (0, 0))]
    with open(path, "wb") as file:
        for inode, (name, mode, data, device) in enumerate(entries, 1):
            text = name[1:].encode() + b"\0"
            fields = (inode, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(text), 0)
            head = b"070701" + b"".join(b"%08x" % field for field in fields) + text
            file.write(head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4))


def emulate(kernel, folder, files, append="", memory_mib=768, seconds=900):
    """Run the machine until it restarts. Its console's text is in folder/console, what it wrote to its second port in folder/out.tar.gz."""
    archive(folder / "files.cpio", files)
    command = [find_program("qemu-system-x86_64"), "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", memory_mib, "-display", "none", "-no-reboot", "-nic", "none",
               "-kernel", kernel, "-initrd", folder / "files.cpio", "-append", f"console=ttyS0 panic=-1 quiet {append}", "-serial", f"file:{folder}/console", "-serial",
               f"file:{folder}/out.tar.gz"]
    try:
        subprocess.run([*map(str, command)], stdin=subprocess.DEVNULL, timeout=seconds, check=True)
    except subprocess.TimeoutExpired:
        pass
    return (folder / "console").read_text(errors="replace")
