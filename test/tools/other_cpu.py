#!/usr/bin/env python3
"""Conformance rows on a CPU that this machine does not have, executed by Bochs, which emulates a whole PC, or by QEMU.

    other_cpu.py [--build DIR] [--devices cpu:x86-64-v4] [--model corei7_skylake_x] [--linux VMLINUZ] [-k PATTERN]
                 [--every N] [--jobs N] [--seconds N] [--keep DIR] [-v]

Each row is compiled here, to an image. A disk with Linux, one static program (other_cpu.c: libtile without a compiler),
the images and the rows' arrays boots in Bochs; the program runs one image after the other and sends back the arrays that
they wrote. Those are compared with NumPy's by run.py's own functions. Devices: cpu:LEVEL and emu:TARGET@LEVEL; all
that are named share one boot. Where the level is one of aarch64, QEMU's user mode runs the program instead, made by a cross compiler,
on the rows' files as they lie; there is no disk and no Linux.

--model: a CPU of `bochs --help cpu`, or of `qemu-aarch64 -cpu help`, with what it has (max,sve256=on); QEMU's own choice has all.
--linux: else what ./bootstrap unpacked under DIR/linux, else the newest in /boot.
--seconds: how long Bochs may take. --keep DIR leaves the rows' files, the disk and what the machine said there.
Needs NumPy and what other_cpu.needs lists (file, Debian's package; QEMU those named in CROSS, Bochs the others); where one is
missing, all is skipped with its name.
The last line is "N passed, N failed, N skipped".
"""
import argparse
import glob
import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tty
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "conformance"))
import run as conformance  # noqa: E402
from rows import ROWS  # noqa: E402

with open(os.path.join(ROOT, "test", "tools", "other_cpu.needs"), encoding="utf-8") as needs:  # which ./bootstrap reads, too
    NEEDS = {package: path for _, path, package in map(str.split, needs)}
CROSS = ("qemu-user", "gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross")
# clearcpuid: Bochs 2.7 tells the plain XSAVE area's size for the compacted one, too; Linux would notice and do without AVX.
LOADER_CONFIG = """default rows
prompt 0
label rows
 kernel /linux
 append initrd=/files console=ttyS0 nokaslr mitigations=off clearcpuid=xsavec,xsaves
"""
# ips: emulated time counts instructions; the fewer there are in a second, the fewer go by while Linux waits for devices.
MACHINE = """display_library: term
config_interface: textconfig
memory: guest={memory}, host={memory}
romimage: file={bios}
vgaromimage: file={vga_bios}
ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14
ata0-master: type=cdrom, path=disk.iso, status=inserted
boot: cdrom
cpu: model={model}, count=1, ips=20000000, reset_on_triple_fault=0
clock: sync=none
com1: enabled=1, mode=file, dev=console
port_e9_hack: enabled=1
log: log
panic: action=fatal
magic_break: enabled=0
"""
# What Bochs 2.7 gets wrong: an instruction that other_cpu.c tries, what is wrong with it, the lines of assembly that meet the fault, and
# how rows with such lines end. Such a row may fail so on a machine that has the fault, and on no other.
HIGH = r"[xyz]mm(1[6-9]|2\d|3[01])\b"
FAULTS = {
    "vcvtps2ph": ("ties are rounded away from zero", r"\bvcvtps2ph\b", 0),
    "vcvttsd2usi": ("2^63 and more counts as too large", r"\bvcvttsd2usi\b", 0),
    "kshiftlw": ("a shift by 15 gives zero", r"\bkshiftlw\s+\$15\b", 0),
    "vgatherqps": ("gathers and scatters take no index register from zmm16 on", rf"\bvp?(gather|scatter)\w+\s.*\((%\w+)?,\s*%{HIGH}", "signal 4"),
    "vpinsrb": ("a displacement of 1 byte counts as words, with registers from xmm16 on", rf"\bvpinsr[bw]\s+\$\d+, -?\d+\(.*%{HIGH}", 0),
    "vpextrw": ("so it does where vpextrb and vpextrw store", rf"\bvpextr[bw]\s+\$\d+, %{HIGH}, -?\d+\(", 0),
}
RECORD = re.compile(rb"\n=> (\w+) (\d+) (.*)\n")
MIB = 1 << 20


class Job:
    """A row on a device; its files lie in the folder, which has the same name on this machine and the other."""

    def __init__(self, number, row, device):
        self.number, self.row, self.device = number, row, device
        self.label = f"{row.name} on {device}"
        self.folder = re.sub(r"\W", "_", self.label)
        self.status, self.said = "no result", b""  # status: an exit status, or a text

    def prepare(self, tilec):
        """Compiles the image and writes the arrays; False where that fails."""
        os.makedirs(self.folder)
        self.want = conformance.expected(self.row)
        (_, words), = conformance.expand(self.row, [self.device], self.number, 1)
        self.compile = [tilec, *conformance.program(self.row, self.folder), "--target", *words[1:]]
        p = subprocess.run([*self.compile, "--emit=image", "-o", self.folder + "/image"], capture_output=True)
        self.status, self.said = (self.status if p.returncode == 0 else p.returncode), p.stderr
        self.items = conformance.arguments(self.row, self.folder)
        return p.returncode == 0

    def line(self):
        """For the file `jobs` of other_cpu.c."""
        saves = [f"{name}={conformance.saved(name, self.folder)}" for name in self.want]
        return "\t".join([self.folder, self.device, self.folder + "/image", str(len(saves)), *saves, *self.items])

    def judge(self, faults):
        """(status, text) of the row; faults: of the machine."""
        said = self.said.decode("utf-8", "replace").strip()
        wrong = (conformance.judged(self.row, self.want, self.folder, self.status, self.said)[0] if isinstance(self.status, int)
                 else f"{self.status}{': ' if said else ''}{said}")
        if not wrong:
            return "pass", ""
        code = subprocess.run([*self.compile, "--emit=asm", "-o", "-"], capture_output=True, text=True).stdout
        blamed = [f"{f}: {FAULTS[f][0]}" for f in faults if self.status == FAULTS[f][2] and re.search(FAULTS[f][1], code)]
        return ("skip", f"Bochs is wrong in {', '.join(blamed)}") if blamed else ("fail", wrong)


# ---- the disk -------------------------------------------------------------------------------------------------------
def read(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def archive(files):
    """A cpio archive ("newc"), which Linux unpacks to be its first file system. files: [(name, mode, device, bytes)]"""
    out = bytearray()
    for number, (name, mode, device, data) in enumerate([*files, ("TRAILER!!!", 0, (0, 0), b"")], 1):
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name) + 1, 0)
        for part in (b"070701" + b"".join(b"%08X" % v for v in fields) + name.encode() + b"\0", data):
            out += part + bytes(-len(part) % 4)
    return bytes(out)


def machine_files(program, jobs):
    folder, file = 0o40755, 0o100755
    yield "dev", folder, (0, 0), b""
    yield "dev/console", 0o20600, (5, 1), b""
    yield "init", file, (0, 0), read(program)
    yield "jobs", file, (0, 0), job_lines(jobs)
    for j in jobs:
        yield j.folder, folder, (0, 0), b""
        for path in [j.folder + "/image", *sorted(glob.glob(j.folder + "/*.npy"))]:
            yield path, file, (0, 0), read(path)


def job_lines(jobs):
    return "\n".join(j.line() for j in jobs).encode()


def make_disk(cx, jobs):
    """disk.iso; the bytes of its files"""
    os.makedirs("disk/isolinux")
    files = archive(machine_files(cx.program, jobs))
    write("disk/files", files)
    write("disk/isolinux/isolinux.cfg", LOADER_CONFIG.encode())
    for path, name in ((cx.linux, "linux"), (NEEDS["isolinux"], "isolinux/isolinux.bin"), (NEEDS["syslinux-common"], "isolinux/ldlinux.c32")):
        shutil.copyfile(path, "disk/" + name)
    subprocess.run(["xorriso", "-as", "mkisofs", "-quiet", "-o", "disk.iso", "-b", "isolinux/isolinux.bin", "-c", "isolinux/catalog",
                    "-no-emul-boot", "-boot-load-size", "4", "-boot-info-table", "disk"], check=True, capture_output=True)
    return len(files)


# ---- the machine ----------------------------------------------------------------------------------------------------
def discard_screen(p):
    """Bochs with a debugger shows its screen on a pseudo-terminal that it names, and stands still when nobody reads there."""
    screen = None
    while p.poll() is None:
        if screen is None:
            time.sleep(0.1)
            named = re.search(rb'connected to screen "(.*)"', read("errors"))
            screen = named and os.open(named[1], os.O_RDONLY | os.O_NOCTTY)
            if screen:
                tty.setraw(screen)
        else:
            try:
                os.read(screen, 4096)
            except OSError:  # the other end is closed
                break
    if screen:
        os.close(screen)


def boot(cx, size):
    """Runs the machine to its end; False when it took too long. What it sent is in the file `sent`."""
    memory = 256 + 4 * size // MIB  # the archive, its files, and what is written beside them
    write("machine", MACHINE.format(memory=memory, bios=NEEDS["bochsbios"], vga_bios=NEEDS["vgabios"], model=cx.model).encode())
    write("commands", b"continue\n")  # Debian's Bochs has its debugger built in, which waits for this
    with open("sent", "wb") as sent, open("errors", "wb") as errors:
        p = subprocess.Popen(["bochs", "-f", "machine", "-rc", "commands"], stdin=subprocess.DEVNULL, stdout=sent, stderr=errors,
                             env={**os.environ, "TERM": "xterm"})
        screen = threading.Thread(target=discard_screen, args=(p,))
        screen.start()
        try:
            p.wait(cx.seconds)  # the status says nothing: to Bochs, power off is a panic
            return True
        except subprocess.TimeoutExpired:
            return False
        finally:
            p.kill()
            p.wait()
            screen.join()


def run_in_qemu(cx):
    """Runs the program here, with QEMU; False when it took too long. What it sent is in the file `sent`."""
    try:
        subprocess.run([NEEDS["qemu-user"], *(["-cpu", cx.model] if cx.model else []), cx.program, "sent"], check=False, timeout=cx.seconds)
        return True
    except subprocess.TimeoutExpired:
        return False


def receive(jobs):
    """Writes the files that were sent; (did the machine come to its end, its faults)"""
    by_folder, faults, data, at = {j.folder: j for j in jobs}, [], read("sent"), 0
    while m := RECORD.search(data, at):
        kind, size, name = m[1], int(m[2]), m[3].decode()
        at = m.end() + size
        body = data[m.end():at]
        if kind == b"file":
            os.makedirs(os.path.dirname(name), exist_ok=True)
            write(name, body)
        elif kind == b"fault":
            faults.append(name)
        elif kind == b"ended":
            status, _, said = body.partition(b"\n")
            by_folder[name].status, by_folder[name].said = (0 if status == b"0" else status.decode()), said
        else:
            return True, faults
    return False, faults


# ---- all ------------------------------------------------------------------------------------------------------------
def linux_of(build):
    """The newest kernel of the folder that ./bootstrap fills, else of this machine."""
    found = [sorted(glob.glob(os.path.join(folder, "vmlinuz*")), key=os.path.getmtime) for folder in (os.path.join(build, "linux", "boot"), "/boot")]
    return next((paths[-1] for paths in found if paths), "")


def lacking(cx):
    """Why there can be no machine; None."""
    packages = [package for package, path in NEEDS.items() if (package in CROSS) == cx.cross and not os.path.exists(path)]
    if packages:
        return "needs " + " ".join(packages)
    return None if cx.cross or os.access(cx.linux, os.R_OK) else "needs a Linux kernel (--linux)"


def parse():
    ap = argparse.ArgumentParser()
    ap.add_argument("--build", default=os.path.join(ROOT, "build"))
    ap.add_argument("--devices", default="cpu:x86-64-v4")
    ap.add_argument("--model")
    ap.add_argument("--linux")
    ap.add_argument("-k", default="")
    ap.add_argument("--every", type=int, default=1)
    ap.add_argument("--jobs", type=int, default=os.cpu_count())
    ap.add_argument("--seconds", type=float, default=7200)
    ap.add_argument("--keep")
    ap.add_argument("-v", action="store_true")
    cx = ap.parse_args()
    cx.build = os.path.abspath(cx.build)
    cx.linux = os.path.abspath(cx.linux or linux_of(cx.build))
    cx.cross = re.search("aarch64|armv", cx.devices) is not None
    cx.model = cx.model or ("" if cx.cross else "corei7_skylake_x")
    cx.program = os.path.join(cx.build, "test", "tools", "other_cpu" + ("_aarch64" if cx.cross else ""))
    cx.tilec = os.path.join(cx.build, "bin", "tilec")
    return cx


def build_program(cx):
    subprocess.run(["cmake", "--build", cx.build, "--target", "other_cpu", "tilec"], check=True, stdout=subprocess.DEVNULL)
    if not cx.cross:
        return
    inputs = subprocess.run(["ninja", "-C", cx.build, "-t", "inputs", "other_cpu"], check=True, capture_output=True, text=True).stdout.split("\n")
    sources = [os.path.join(cx.build, path) for path in inputs if path.endswith(".c")]
    subprocess.run([NEEDS["gcc-aarch64-linux-gnu"], "-static", "-std=c11", "-O2", "-D_GNU_SOURCE", "-I", ROOT, "-I",
                    os.path.join(ROOT, "runtime", "include"), "-o", cx.program, *sources, "-lpthread", "-ldl", "-lm"], check=True,
                   stderr=None if cx.v else subprocess.DEVNULL)  # ld warns of dlopen in static programs


def run_jobs(cx, jobs):
    """Everything between the rows and the files that they wrote, in the current folder. The machine's faults."""
    start = time.monotonic()
    with ThreadPoolExecutor(max(cx.jobs, 1)) as pool:
        ready = [job for job, done in zip(jobs, pool.map(lambda j: j.prepare(cx.tilec), jobs)) if done]
    print(f"{len(ready)} of {len(jobs)} compiled in {time.monotonic() - start:.0f} s", flush=True)
    if cx.cross:
        write("jobs", job_lines(ready))
    else:
        size = make_disk(cx, ready)
        print(f"{size // MIB} MiB go to the machine", flush=True)
    start = time.monotonic()
    in_time = run_in_qemu(cx) if cx.cross else boot(cx, size)
    ended, faults = receive(ready)
    flags = re.search(rb"^flags\s*: (.*)", read("proc/cpuinfo") if os.path.exists("proc/cpuinfo") else b"", re.M)
    if not cx.cross:
        print("its CPU " + ("has " + (" ".join(re.findall(r"avx\w*", flags[1].decode())) or "no AVX") if flags else "said nothing"))
    print(f"it {'ended' if ended else 'broke off' if in_time else 'was stopped'} after {time.monotonic() - start:.0f} s", flush=True)
    for name in ("console", "log"):
        if not ended and os.path.exists(name):
            print(f"its {name} ends with: " + read(name).decode("latin-1").strip()[-500:])
    return faults


def main():
    cx = parse()
    for path in sorted(glob.glob(os.path.join(ROOT, "test", "conformance", "rows_*.py"))):
        importlib.import_module(os.path.basename(path)[:-3])
    rows = [(n, r) for n, r in enumerate(ROWS) if re.search(cx.k, r.name)][:: cx.every]
    jobs = [Job(n, row, device) for device in cx.devices.split(",") for n, row in rows if not row.devices or device.split(":")[0] in row.devices]
    why = lacking(cx)
    if why:
        print(f"{why}\n0 passed, 0 failed, {len(jobs)} skipped")
        return 0
    build_program(cx)
    count = dict.fromkeys(("pass", "fail", "skip"), 0)
    with tempfile.TemporaryDirectory(prefix="tile-other-") as folder:
        os.chdir(folder)
        faults = run_jobs(cx, jobs)
        for job in jobs:
            status, text = job.judge(faults)
            count[status] += 1
            if status != "pass" or cx.v:
                print(f"{status} {job.label}{': ' if text else ''}{text}")
        if cx.keep:
            shutil.copytree(folder, cx.keep, dirs_exist_ok=True)
        os.chdir(ROOT)
    print(f"{count['pass']} passed, {count['fail']} failed, {count['skip']} skipped")
    return 1 if count["fail"] or not jobs else 0


if __name__ == "__main__":
    sys.exit(main())
