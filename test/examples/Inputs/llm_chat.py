#!/usr/bin/env python3
"""Chat templates of some families: 08_llm -c makes of a prompt what the template does, or refuses by name what it does not know.

    llm_chat.py PROGRAM SCRATCH

Where this Python has jinja2, it runs the templates, too: what is expected is what they make.
"""
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import llm_words  # noqa: E402

MARKS = ["<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<start_of_turn>", "<end_of_turn>", "<|user|>",
         "<|assistant|>", "<|system|>", "<|end|>", "[INST]", "[/INST]"]
TOKENS = [llm_words.LETTERS[b] for b in range(256)] + MARKS
PROMPT = " Who?\n"
FIRST = "{{ bos_token }}"
EACH = "{% for m in messages %}"
ASK = "{% endfor %}{% if add_generation_prompt %}"
CHATML = "{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' + '\\n' }}" + ASK + "{{ '<|im_start|>assistant\\n' }}{% endif %}"
USUAL = "{% if loop.first and m.role != 'system' %}{{ '<|im_start|>system\\nYou are kind.<|im_end|>\\n' }}{% endif %}"
TOOLS = "{% if tools %}{{ '<|im_start|>system\\n' + '<tools>' + tools + '</tools><|im_end|>\\n' }}{% endif %}"
LLAMA3 = ("{% set text = '<|start_header_id|>' + m['role'] + '<|end_header_id|>\n\n' + m['content'] | trim + '<|eot_id|>' %}{{ text }}{% endfor %}"
          "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}")
DATED = ("{{ bos_token }}{% if messages[0].role == 'system' %}{% set system = messages[0]['content'] | trim %}{% set rest = messages[1:] %}{% else %}{% set system = '' %}"
         "{% set rest = messages %}{% endif %}{{ '<|start_header_id|>system<|end_header_id|>\\n\\nCutting Knowledge Date: December 2023\\nToday Date: 26 Jul 2024\\n\\n' }}"
         "{{ system + '<|eot_id|>' }}{% for m in rest %}{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n' + m.content | trim + '<|eot_id|>' }}" + ASK
         + "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}")
GEMMA = ("{% if m.role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}{{ '<start_of_turn>' + m.role + '\n' + m.content | trim + '<end_of_turn>\n' }}"
         + ASK + "{{ '<start_of_turn>model\n' }}{% endif %}")
GEMMA3 = ("{% if messages[0]['role'] == 'system' %}{% set prefix = messages[0]['content'] + '\\n\\n' %}{% set rest = messages[1:] %}{% else %}{% set prefix = '' %}"
          "{% set rest = messages %}{% endif %}{% for m in rest %}{{ '<start_of_turn>' + m.role + '\\n' + (prefix if loop.first else '') }}{{ m.content | trim }}"
          "{{ '<end_of_turn>\\n' }}" + ASK + "{{ '<start_of_turn>model\\n' }}{% endif %}")
PHI3 = ("{% if m.role == 'system' %}{{ '<|system|>\n' + m.content + '<|end|>\n' }}{% elif m.role == 'user' %}{{ '<|user|>\n' + m.content + '<|end|>\n' }}{% endif %}"
        + ASK + "{{ '<|assistant|>\n' }}{% endif %}")
MISTRAL = "{% if m.role == 'user' %}{{ 'BEFORE' + m.content + 'AFTER' }}{% else %}{{ m.content | trim + eos_token }}{% endif %}{% endfor %}"
HEADER = "<|start_header_id|>{}<|end_header_id|>\n\n"
DATE = "<s>" + HEADER.format("system") + "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"
TALK = HEADER.format("user") + "Who?<|eot_id|>" + HEADER.format("assistant")


def mistral(before, after):
    return FIRST + EACH + MISTRAL.replace("BEFORE", before).replace("AFTER", after)


# name, template, system message, what it makes of PROMPT
COMPUTED = [
    ("chatml", EACH + CHATML, None, "<|im_start|>user\n Who?\n<|im_end|>\n<|im_start|>assistant\n"),
    ("chatml, a system message", FIRST + EACH + CHATML, "Be brief. ",
     "<s><|im_start|>system\nBe brief. <|im_end|>\n<|im_start|>user\n Who?\n<|im_end|>\n<|im_start|>assistant\n"),
    ("chatml, the usual system message", TOOLS + EACH + USUAL + CHATML, None,
     "<|im_start|>system\nYou are kind.<|im_end|>\n<|im_start|>user\n Who?\n<|im_end|>\n<|im_start|>assistant\n"),
    ("chatml, not the usual system message", TOOLS + EACH + USUAL + CHATML, "No.", "<|im_start|>system\nNo.<|im_end|>\n<|im_start|>user\n Who?\n<|im_end|>\n<|im_start|>assistant\n"),
    ("llama3", FIRST + EACH + LLAMA3, None, "<s>" + TALK),
    ("llama3, a system message", FIRST + EACH + LLAMA3, " Be brief. ", "<s>" + HEADER.format("system") + "Be brief.<|eot_id|>" + TALK),
    ("llama3 with a date", DATED, None, DATE + "<|eot_id|>" + TALK),
    ("llama3 with a date, a system message", DATED, "Be brief.", DATE + "Be brief.<|eot_id|>" + TALK),
    ("gemma", FIRST + EACH + GEMMA, None, "<s><start_of_turn>user\nWho?<end_of_turn>\n<start_of_turn>model\n"),
    ("gemma, a system message", FIRST + GEMMA3, "Be brief. ", "<s><start_of_turn>user\nBe brief. \n\nWho?<end_of_turn>\n<start_of_turn>model\n"),
    ("chatml with thoughts", EACH + CHATML.replace("assistant\\n", "assistant\\n<think>\\n"), None, "<|im_start|>user\n Who?\n<|im_end|>\n<|im_start|>assistant\n<think>\n"),
    ("phi3, lines of their own", "{% for m in messages %}{{ '<|user|>' + '\n' + m.content + '<|end|>' + '\n' + '<|assistant|>' + '\n' }}{% endfor %}", None,
     "<|user|>\n Who?\n<|end|>\n<|assistant|>\n"),
    ("phi3", EACH + PHI3, None, "<|user|>\n Who?\n<|end|>\n<|assistant|>\n"),
    ("phi3, a system message", EACH + PHI3, "Be brief.", "<|system|>\nBe brief.<|end|>\n<|user|>\n Who?\n<|end|>\n<|assistant|>\n"),
    ("mistral", mistral("[INST] ", " [/INST]"), None, "<s>[INST]  Who?\n [/INST]"),
    ("mistral, a blank before", mistral(" [INST] ", " [/INST]"), None, "<s> [INST]  Who?\n [/INST]"),
    ("mistral, third", mistral("[INST] ", "[/INST]"), None, "<s>[INST]  Who?\n[/INST]"),
    ("another family", EACH + "USER: {{ m.content | trim }}\n{% endfor %}\nASSISTANT:", None, "USER: Who?\nASSISTANT:"),
    ("mistral without blanks", mistral("[INST]", "[/INST]"), None, "<s>[INST] Who?\n[/INST]"),
]
REFUSED = [
    ("none", None, None, "it has no chat template"),
    ("what the template refuses", FIRST + EACH + GEMMA, "Be brief.", "its chat template: it refuses: System role not supported"),
    ("an unknown filter", "{{ messages | tojson }}", None, "the filter 'tojson' is not known here"),
    ("an unknown test", "{{ 1 is odd }}", None, "the test 'odd' is not known here"),
    ("an unknown function", "{{ cycler('a') }}", None, "'cycler()' is not known here"),
    ("an unknown method", "{{ 'a'.center(3) }}", None, "'.center()' is not known here"),
    ("a function of its own", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1) }}", None, "'m()' is not known here"),
    ("an unknown statement", "{% include 'a' %}", None, "the statement 'include' is not known here"),
    ("a loop that is left", "{% for m in messages %}{% break %}{% endfor %}", None, "the statement 'break' is not known here"),
    ("no end", "{% if true %}a", None, "'elif' is missing at the end"),
    ("no end of a tag", "{{ 'a'", None, "'}}' is missing before"),
    ("no end of a text", "{{ 'a }}", None, "a text does not end"),
    ("a part of nothing", "{{ nobody.name }}", None, "a part of something that is not defined"),
    ("two kinds", "{{ 'a' + 1 }}", None, "'+' of what does not go together"),
    ("a long loop", "{% for i in range(10000000) %}{% endfor %}", None, "a range of that size"),
    ("a longer loop", "{% for i in range(90000) %}{% for k in range(90000) %}{% endfor %}{% endfor %}", None, "no memory"),
    ("much in brackets", "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", None, "it is too deep"),
    ("many blocks", "{% if 1 %}" * 3000, None, "it is too deep"),
    ("a text that grows", "{% set n = namespace(t='ab') %}{% for i in range(90) %}{% set n.t = n.t + n.t %}{% endfor %}", None, "no memory"),
]
# What templates write, and what it makes: of blanks, lines, loops, parts.
LANGUAGE = [
    ("{% if true %}\na\n{% endif %}\nb\n", "a\nb"), ("a\n  {%- if true -%}\n b {%- endif %}\n c", "ab c"), ("x {# no #}\n {#- -#} y", "x y"), ("  {%+ if 1 %}a{% endif +%}\nb", "  a\nb"),
    ("{{ messages[-1]['content'] | trim }} {{ messages[0].role }} {{ messages[1:] | length }}", "Who? user 0"),
    ("{% set n = namespace(i=0, t='') %}{% for c in ['a', 'b', 'c'] if c != 'b' %}{% set n.i = n.i + loop.index %}{% set n.t = n.t ~ c ~ loop.last %}{% endfor %}{{ n.i }}{{ n.t }}",
     "3aFalsecTrue"),
    ("{{ strftime_now is defined and raise_exception is defined and namespace is defined }} {{ '20' in strftime_now('%Y') }}", "True True"),
    ("{% for x in [] %}a{% else %}b{% endfor %}{% for k, v in {'p': 1, 'q': 2}.items() %}{{ k }}={{ v }};{% endfor %}", "bp=1;q=2;"),
    ("{% set x = 1 %}{% for i in range(3) %}{% set x = i %}{% endfor %}{{ x }}{% if true %}{% set x = 7 %}{% endif %}{{ x }}", "17"),
    ("{{ 'a' if false else 'b' if true else 'c' }}{{ 'd' if false }}{{ (1 if 1 == 2 else 2) if false else 3 }}", "b3"),
    ("{{ nobody is defined }} {{ tools is none }} {{ not nobody and 2 or 3 }} {{ 'a' in 'cat' }} {{ 'x' not in ['x'] }} {{ '1' is string and {} is mapping }}", "False True 2 True False True"),
    ("{{ ' a b '.strip() ~ '|' ~ '--x-'.lstrip('-') ~ '|' ~ 'a,b'.split(',')[1] ~ '|' ~ ('Ab' | upper) ~ 'c'.title() ~ ('x' * 0 if false else '') }}", "a b|x-|b|ABC"),
    ("{% set t %}\n<{{ 1 + 2 * 3 - 4 // 2 }}>{% endset %}{{ t }}{{ 7 % 4 }}{{ -3 }}{{ nobody | default('n') }}{{ [1, 2] | join('+') }}{{ 'a' \n 'b' }}", "<5>3-3n1+2ab"),
    ("{% for m in messages[::-1] | selectattr('role', 'equalto', 'user') %}{{ m.get('content', '') | replace('W', 'V') | trim }}{{ m.get('tools') }}{% endfor %}", "Vho?None"),
    ("{% if tools %}{% for t in tools %}{{ t.function.name | tojson(indent=4) }}{% break %}{% endfor %}{{ call(t, a=1)[2:-1].x }}{% elif messages is iterable %}e{% else %}f{% endif %}", "e"),
]


def write(path, template, form):
    """form: where the template is."""
    at = 256
    if form == "gguf":
        words = dict(model="gpt2", pre="gpt-2", tokens=TOKENS, merges=["a b"], token_type=[3 if i >= at else 1 for i in range(len(TOKENS))], bos_token_id=at)
        words["tokens"] = TOKENS + ["ab"]
        words["token_type"].append(1)
        llm_words.gguf(path + ".gguf", **words, chat=template)
        return path + ".gguf"
    llm_words.folder(path, model=dict(type="BPE", vocab={t: i for i, t in enumerate(TOKENS[:at])}, merges=[]),
                     added_tokens=[dict(id=at + i, content=m, special=True) for i, m in enumerate(MARKS)],
                     pre_tokenizer=dict(type="ByteLevel", add_prefix_space=False, use_regex=True))
    config = {"bos_token": {"content": "<s>"} if form == "list" else "<s>", "eos_token": "</s>"}
    if template and form != "file":
        config["chat_template"] = [dict(name="tools", template="no"), dict(name="default", template=template)] if form == "list" else template
    with open(os.path.join(path, "tokenizer_config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f)
    if template and form == "file":
        with open(os.path.join(path, "chat_template.jinja"), "w", encoding="utf-8") as f:
            f.write(template)
    return path


def rendered(template, system):
    """What jinja2 makes of it; None: it is not installed."""
    try:
        import jinja2.sandbox
    except ImportError:
        return None
    messages = [dict(role="system", content=system)] if system else []
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    env.globals |= dict(raise_exception=None, strftime_now=lambda form: time.strftime(form))
    return env.from_string(template).render(messages=messages + [dict(role="user", content=PROMPT)], tools=None, bos_token="<s>", eos_token="</s>", add_generation_prompt=True)


def run(program, model, system):
    return subprocess.run([program, "-w", "-c", *(["-i", system] if system else []), model, PROMPT], capture_output=True, text=True, check=False)


def text_of(numbers):
    back = {v: k for k, v in llm_words.LETTERS.items()}
    out = b""
    for n in map(int, numbers.split()):
        out += TOKENS[n].encode() if n >= 256 else bytes(back[c] for c in TOKENS[n])
    return out.decode()


def main(program, scratch):
    os.makedirs(scratch, exist_ok=True)
    wrong = made = refused = 0
    forms = ("string", "list", "file", "gguf")
    rows = COMPUTED + [(template, template, None, expected) for template, expected in LANGUAGE]
    for i, (name, template, system, expected) in enumerate(rows):
        by_jinja = rendered(template, system)
        if by_jinja not in (None, expected):
            wrong += 1
            print(f"{name}: the template makes {by_jinja!r}, not {expected!r}")
        for form in forms if i < len(COMPUTED) else forms[:1]:
            r = run(program, write(os.path.join(scratch, f"made-{i}-{form}"), template, form), system)
            got = r.stderr.strip() if r.returncode else text_of(r.stdout)
            made += 1
            wrong += got != expected
            if got != expected:
                print(f"{name}, {form}: {got!r}, not {expected!r}")
    for i, (name, template, system, why) in enumerate(REFUSED):
        for form in forms if template is None else forms[:1]:
            r = run(program, write(os.path.join(scratch, f"refused-{i}-{form}"), template, form), system)
            good = r.returncode == 1 and len(r.stderr.splitlines()) == 1 and why in r.stderr
            refused += 1
            wrong += not good
            if not good:
                print(f"{name}, {form}: status {r.returncode}, {r.stderr!r}, not {why!r}")
    print(f"{made} prompts made, {refused} templates refused, {wrong} wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
