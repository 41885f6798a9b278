#!/usr/bin/env python3
"""08_llm -S answers as OpenAI's server does: whole and as events, many clients at a time, with pages that texts share, and refuses by name what it does not do.

    llm_serve.py PROGRAM MODELS SCRATCH
"""
import http.client
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

LONG = "A tile is a block of numbers whose shape is known before the program runs."
PROMPTS = ["A tile is", "The compiler", "Nobody", LONG, LONG + " It has", LONG + " It has rows and columns", "A slice that reaches past the edge reads", "It has rows", 70 * "z"]
MIXED = [16 * a + 20 * b for a in "zqxjkv" for b in "wy"]  # the same page behind different ones
TEMPLATE = "{{ bos_token }}{% for m in messages %}{{ '<' + m['role'] + '>' + m['content'] }}{% endfor %}{% if add_generation_prompt %}{{ '<assistant>' }}{% endif %}"
faults = []


def check(what, good, *shown):
    if not good:
        faults.append(what)
        print(what, *shown)


class Server:
    def __init__(self, program, model, *options):
        self.process = subprocess.Popen([program, "-S", "0", *options, model], stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.port = int(line.rsplit(":", 1)[1].split("/")[0]) if ":" in line else 0

    def ask(self, path, body=None, kind="application/json"):
        """(status, text)"""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        text = body if isinstance(body, str) or body is None else json.dumps(body)
        c.request("GET" if body is None else "POST", path, text, {"Content-Type": kind} if kind else {})
        r = c.getresponse()
        out = r.status, r.read().decode()
        c.close()
        return out

    def complete(self, prompt, **more):
        """(text, why it ended, usage)"""
        status, text = self.ask("/v1/completions", {"prompt": prompt, "max_tokens": 20, "temperature": 0, **more})
        if status != 200:
            return text, status, {}
        if not more.get("stream"):
            r = json.loads(text)
            return r["choices"][0]["text"], r["choices"][0]["finish_reason"], r["usage"]
        events = text.strip().split("\n\n")
        check("events", all(e.startswith("data: ") for e in events) and events[-1] == "data: [DONE]", text)
        parts = [json.loads(e[6:]) for e in events[:-1]]
        choices = [c for p in parts for c in p["choices"]]
        check("the last event has no text", choices[-1]["text"] == "", text)
        return "".join(c["text"] for c in choices), choices[-1]["finish_reason"], next((p["usage"] for p in parts if "usage" in p), None)

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        check("it ends well", self.process.wait(60) == 0, self.process.returncode)


def said(program, model, prompt, n, *options):
    """What the program says; asked for logits, it shares no pages."""
    options += () if "-c" in options else ("-l", os.devnull)
    out = subprocess.run([program, "-n", str(n), *options, model, prompt], capture_output=True, text=True, errors="replace", timeout=120).stdout
    return out.split(f"[{prompt}]", 1)[1].split("\nprompts:", 1)[0]


def texts(program, model):
    s = Server(program, model)
    check("models", json.loads(s.ask("/v1/models", kind=None)[1])["data"][0]["id"] == os.path.basename(model))
    alone = [s.complete(p) for p in PROMPTS]
    for p, (text, why, usage) in zip(PROMPTS, alone):
        check(f"what the program says of {p!r}", text == said(program, model, p, 20), text)
        n = usage["completion_tokens"]
        check("its end", (why == "length") == (n == 20) and usage["total_tokens"] == usage["prompt_tokens"] + n, why, usage)
    cached = [u["prompt_tokens_details"]["cached_tokens"] for _, _, u in alone]
    check("shared pages, the first of which was generated", cached[:3] == [0, 0, 0] and cached[3:6] == [16, 16, 32], cached)
    check("events are the same text", s.complete(LONG, stream=True)[:2] == alone[3][:2])
    check("no usage", s.complete(LONG, stream=True)[2] is None)
    check("usage", s.complete(LONG, stream=True, stream_options={"include_usage": True})[2]["completion_tokens"] == 20)
    for stream in (False, True):
        text, why, _ = s.complete("A tile is", max_tokens=200, stream=stream, stop=["never", "known"])
        check("a word that ends it", (text, why) == (" a block of numbers whose shape is ", "stop"), text, why)
        text, why, _ = s.complete("Nobody", max_tokens=200, stream=stream)
        check("a token that ends it", (text, why) == (said(program, model, "Nobody", 200), "stop"), text, why)
    for stream in (False, True):  # bytes by chance are no characters; what comes is
        s.complete("A", temperature=50, max_tokens=100, stream=stream)
    for field, value in (("top_k", 1), ("top_p", 1e-6)):
        check(field, s.complete("A tile is", temperature=3, **{field: value})[0] == alone[0][0])
    refusals(s)
    s.close()


def many(program, model):
    """More clients than there is room for: pages are given back, and what others left goes when it has to. Some clients leave."""
    s = Server(program, model, "-m", "128", "-r", "256")
    alone = [s.complete(p)[:2] for p in PROMPTS]
    with ThreadPoolExecutor(24) as pool:
        for stream in (False, True):
            together = list(pool.map(lambda p: s.complete(p, stream=stream)[:2], 6 * PROMPTS))
            check("together as alone", together == 6 * alone, [(a, b) for a, b in zip(together, 6 * alone) if a != b][:3])
        for _ in range(8):
            c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=60)
            c.request("POST", "/v1/completions", json.dumps({"prompt": "The", "stream": True, "temperature": 9}), {"Content-Type": "application/json"})
            c.getresponse().read(40)
            c.sock.close()
        mixed = {p: said(program, model, p, 20) for p in MIXED}
        rng = random.Random(1)
        order = [rng.choice(MIXED)[: rng.choice((20, 30, 36))] for _ in range(200)]
        mixed |= {p: said(program, model, p, 20) for p in {*order} - {*mixed}}
        got = list(pool.map(lambda p: s.complete(p, max_tokens=20)[0], order))
        wrong = [p for p, text in zip(order, got) if text != mixed[p]]
        check("the same page behind different ones", not wrong, wrong)
        check("room is back", list(pool.map(lambda p: s.complete(p)[:2], 3 * PROMPTS)) == 3 * alone)
    check("a text that never fits", s.complete(LONG * 12)[1] == 400)
    s.close()


def talk(program, model):
    s = Server(program, model)
    ask = lambda messages, **more: s.ask("/v1/chat/completions", {"messages": messages, "max_tokens": 12, "temperature": 0, **more})
    user = {"role": "user", "content": "A tile is"}
    text = json.loads(ask([user])[1])["choices"][0]["message"]
    check("a talk", text == {"role": "assistant", "content": said(program, model, "A tile is", 12, "-c")}, text)
    parts = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "A tile"}, {"type": "text", "text": " is"}]}]
    text = json.loads(ask(parts)[1])["choices"][0]["message"]["content"]
    check("a system message, a text in parts", text == said(program, model, "A tile is", 12, "-c", "-i", "Be brief."), text)
    check("a talk of three, as one text", json.loads(ask([user, {"role": "assistant", "content": "x"}, user])[1])["choices"][0]["message"]["content"]
          == s.complete("<user>A tile is<assistant>x<user>A tile is<assistant>", max_tokens=12)[0])
    events = [json.loads(e[6:]) for e in ask([user], stream=True)[1].strip().split("\n\n")[:-1]]
    check("events of a talk", events[0]["choices"][0]["delta"]["role"] == "assistant" and events[0]["object"] == "chat.completion.chunk"
          and "".join(e["choices"][0]["delta"].get("content", "") for e in events) == said(program, model, "A tile is", 12, "-c"), events)
    for messages in ([], "x", [{"role": "user"}], [{"content": "x"}], [{"role": "user", "content": [{"type": "image_url"}]}]):
        check("messages", ask(messages)[0] == 400, messages)
    s.close()


def refusals(s):
    for body, status, words in (
            ("{", 400, "expected"), ("[]", 400, "no object"), ({}, 400, "'prompt or messages' is not there"), ({"prompt": 3}, 400, "'prompt' is not a text"),
            ({"prompt": ["a", "b"]}, 400, "'prompt' is not a text"), ({"prompt": ""}, 400, "the prompt is empty"), ({"prompt": "x", "n": 2}, 400, "'n' is not done here"),
            ({"prompt": "x", "max_tokens": 0}, 400, "'max_tokens' is not a whole number"), ({"prompt": "x", "temperature": -1}, 400, "'temperature' is not a number"),
            ({"prompt": "x", "stream": 1}, 400, "'stream' is not true or false"), ({"prompt": "x", "stop": ["a"] * 5}, 400, "'stop' is not a text"),
            ({"prompt": "x", "seed": 1}, 400, "'seed' is not known here"), ({"prompt": "x", "logit_bias": {"1": 2}}, 400, "'logit_bias' is not done here"),
            ({"prompt": LONG * 400}, 400, "and a text at most 2048"), ('{"prompt": "x", "prompt": "y"}', 400, "duplicate")):
        got, text = s.ask("/v1/completions", body)
        check(f"refused: {words}", got == status and words in json.loads(text)["error"]["message"], got, text)
    for path, body, kind, status in (("/v2", None, None, 404), ("/v1/models", {}, "application/json", 405), ("/v1/completions", None, None, 405),
                                     ("/v1/completions", {"prompt": "x"}, "text/plain", 415), ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]}, "application/json", 400)):
        check(f"{path}: {status}", s.ask(path, body, kind)[0] == status, s.ask(path, body, kind))
    check("what asks for nothing", s.complete("A", n=1, user="me", logprobs=None, tools=[], presence_penalty=0.0, model="any")[1] == "length")


def main(program, models, scratch):
    os.environ["TILE_DEVICE"] = "cpu"
    texts(program, os.path.join(models, "q8_0.gguf"))
    many(program, os.path.join(models, "q4_0.gguf"))
    shutil.rmtree(scratch, ignore_errors=True)
    shutil.copytree(os.path.join(models, "bf16"), scratch)
    with open(os.path.join(scratch, "tokenizer_config.json"), "w", encoding="utf-8") as f:
        json.dump({"chat_template": TEMPLATE}, f)
    talk(program, scratch)
    print(f"{len(faults)} faults")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
