#!/usr/bin/env python3
"""08_llm beside llama.cpp, one thread, by the processor's time.

    run.py BUILD --llama SOURCE --llama-build WHERE [--models FOLDER] [--rounds N]

SOURCE: a tree of llama.cpp, WHERE: where it was built as shared libraries. FOLDER: .gguf files (without it, random ones of make_model.py with 150
million weights). Both run the same file with the same prompt. Logits of the prompt's tokens are compared; then each runs short and
long texts in turn, and what a token costs is the difference of the processor's time, so that loading and compiling do not count.
"""
import argparse
import glob
import os
import resource
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
SENTENCE = "A tile's 12 words and more: it's read, and written, and read again, until nobody can count how often it was. "
PROMPTS = SENTENCE[:8], SENTENCE * 6
TOKENS = 2, 34


def build_host(source, build, to):
    path = os.path.join(to, "llama_host")
    libraries = os.path.join(build, "bin")
    subprocess.run(["cc", "-O2", os.path.join(HERE, "llama_host.c"), "-o", path, f"-I{source}/include", f"-I{source}/ggml/include",
                    f"-L{libraries}", "-lllama", "-lggml", "-lggml-base", f"-Wl,-rpath,{libraries}"], check=True)
    return path


def seconds(command):
    """The processor's time of a command, and what it printed."""
    def used():
        u = resource.getrusage(resource.RUSAGE_CHILDREN)
        return u.ru_utime + u.ru_stime
    before = used()
    out = subprocess.run(command, check=True, capture_output=True, text=True, errors="replace", env=dict(os.environ, TILE_THREADS="1", TILE_DEVICE="cpu")).stdout
    return used() - before, out


class Peers:
    def __init__(self, args, folder):
        self.folder, self.ours = folder, os.path.join(args.build, "bin", "08_llm")
        self.host = build_host(args.llama, args.llama_build, folder)

    def command(self, who, model, prompt, tokens):
        logits = os.path.join(self.folder, who)
        if who == "tilec":
            return [self.ours, "-n", str(tokens), *(["-l", logits] if tokens < 2 else []), model, prompt]
        return [self.host, model, "1", str(tokens), logits, prompt]

    def logits(self, model):
        """The error of ours against llama.cpp's, of the greatest; how often both prefer the same token; tokens of the long prompt."""
        for who in "tilec", "llama":
            _, out = seconds(self.command(who, model, PROMPTS[1], 1))
        a = np.load(os.path.join(self.folder, "tilec"))
        b = np.fromfile(os.path.join(self.folder, "llama"), np.float32).reshape(a.shape)
        return np.abs(a - b).max() / np.abs(b).max(), (a.argmax(1) == b.argmax(1)).mean(), len(a)

    def measure(self, model, rounds, length):
        """Milliseconds of a token of a prompt and of a generated one, medians."""
        each = {who: ([], []) for who in ("tilec", "llama")}
        for _ in range(rounds):
            for who, (prompt, generated) in each.items():
                t = [seconds(self.command(who, model, *case))[0]
                     for case in ((PROMPTS[0], TOKENS[0]), (PROMPTS[0], TOKENS[1]), (PROMPTS[1], TOKENS[0]))]
                generated.append(1e3 * (t[1] - t[0]) / (TOKENS[1] - TOKENS[0]))
                prompt.append(1e3 * (t[2] - t[0]) / (length - 3))
        return {who: [float(np.median(x)) for x in lists] for who, lists in each.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--llama", required=True)
    parser.add_argument("--llama-build", required=True)
    parser.add_argument("--models")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if not args.models:
            args.models = os.path.join(folder, "models")
            subprocess.run([sys.executable, os.path.join(ROOT, "examples/08_llm/make_model.py"), args.models, "--random", "150", "--gguf"], check=True)
        peers = Peers(args, folder)
        print("| weights | logits differ by | same token | a token of a prompt, ms: tilec | llama.cpp | ratio | a generated token, ms: tilec | llama.cpp | ratio |")
        print("| --- " * 9 + "|")
        for model in sorted(glob.glob(os.path.join(args.models, "*.gguf"))):
            error, same, length = peers.logits(model)
            t = peers.measure(model, args.rounds, length)
            cells = [f"{t['tilec'][i]:.2f} | {t['llama'][i]:.2f} | {t['llama'][i] / t['tilec'][i]:.2f}" for i in (0, 1)]
            print(f"| {os.path.basename(model)} | {error:.1e} | {same:.3f} | {cells[0]} | {cells[1]} |", flush=True)


if __name__ == "__main__":
    main()
