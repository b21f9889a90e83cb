#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes templates.json: chat templates, and what transformers makes of messages with them. The same on every run.

    make_templates.py      needs: pip install transformers jinja2 (made with transformers 5.23, jinja2 3.1.6)"""

import json
import pathlib
import random

from transformers.utils.chat_template_utils import render_jinja_template

HERE = pathlib.Path(__file__).resolve().parent
PAIR = [{"role": "query", "content": "How tall?"}, {"role": "document", "content": "330 m"}]
SYSTEM = [{"role": "system", "content": "  \u00a0Be strict\u2028 "}]
VARIABLES = {"add_generation_prompt": True, "bos_token": "<s>", "thinking": False, "steps": 3}

SELECT = 'messages | selectattr("role", "eq", "{}") | map(attribute="content") | first'
TEMPLATES = [
    # As the rerankers of Qwen, mixedbread, ZeroEntropy and others write them.
    "{%- set task = " + SELECT.format("system") + ' | default("find what answers") -%}\n'
    "{%- set query = " + SELECT.format("query") + " -%}\n{%- set document = " + SELECT.format("document") + " -%}\n"
    "<|im_start|>system\nJudge. Say \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n<T>: {{ task }}\n<Q>: {{ query }}\n"
    "<D>: {{ document }}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n\n",
    '<s>query: {{ (messages | selectattr("role", "eq", "query") | first).content }}\n'
    'document: {{ (messages | selectattr("role", "eq", "document") | first).content }}\nRelevance:<e>\n\n',
    '{%- set q = (\n    messages\n    | selectattr("role", "==", "query")\n    | first\n).content -%}\n'
    '{{- "<a>\\n"\n    ~ "He said \\"yes\\" or \'no\'."\n    ~ q ~ "\\n" ~ messages[-1]["content"] ~ "\\t"\n-}}\n',
    "{% for message in messages %}\n{{ '<|' + message.role + '|>' }}\n  {%- if message['role'] == 'system' %}\n\n"
    "{{ message.content | trim }}\n{% elif loop.last %}{{ message.content }}{{ bos_token }}\n{% else %}\n"
    "{{ loop.index }}/{{ loop.length }} {{ message.content }}\n{% endif %}\n{% endfor %}\n"
    "{% if add_generation_prompt %}\n<|assistant|>\n{% endif %}\n",
    "{% if messages[0].role == 'system' %}{% set system = messages[0].content %}{% endif %}"
    "{{ system if system is defined else 'none' }}|{{ system is undefined }}|{{ tools is none }}|{{ eos_token }}|{{ missing }}",
    "{{ 'a' if steps > 2 and not thinking }}{{ 1 if steps <= 2 else 2 }}{{ steps + 1 }}{{ steps ~ thinking ~ none }}",
    "{% set x = 'a' %}{% for m in messages %}{{ x }}{% set x = m.role %}{{ x }}{% endfor %}{{ x }}",
    "{{ messages | length }}{{ messages | rejectattr('role', 'ne', 'query') | list | count }}"
    "{{ (messages | selectattr('name', 'defined') | first) is defined }}{{ messages[7] is defined }}"
    "{{ messages | map(attribute='role') | list | last }}{{ missing | default('x') }}{{ '' | default('y', true) }}"
    "{{ none | d(default_value='z', boolean=true) }}{{ steps | string ~ '!' }}{{ messages[0].role is string }}",
    "{% for role in messages | map(attribute='role') %}{{ role }}{{ loop.last }}{{ loop.length }}{% endfor %}"
    "{{ messages | selectattr('role', 'eq', 'system') is defined }}{{ messages | map(attribute='role') | list | last }}"
    "{{ 'a' if messages | selectattr('role', 'eq', 'system') | list else 'b' }}",
    "{{ 'a' 'b' \"c\" }}{# comment #}\n{#- more -#}  {{- ' end ' -}}  \n.\r\n\r",
    "a\n  {% if true %}  \n  b {%+ if false %}c{% endif +%}\n{% endif -%}  \n d\n   {# x #}\n e\n  {{ 1 }}\n\n",
    "a\u00a0 {{- 1 -}}\u3000\x1c b\n\u00a0{% if true %}\u2003\n{% endif %}\u2028{{\u00a02\u3000}}\x1f{#- c -#}\x85c\u200b \u1680"
    "{%- set x = 3 -%}\n\x1d\u202f{{ x }}",
]


def random_template(draw):
    """Tags and whitespace in any order."""
    space = lambda: "".join(draw.choice(["", " ", "\n", "\t", "  \n", "x"]) for _ in range(draw.randrange(4)))  # noqa: E731
    sign = lambda signs: draw.choice(signs)  # noqa: E731
    text, opened = space(), 0
    for _ in range(draw.randrange(2, 7)):
        kind = draw.randrange(4)
        if kind == 0:
            text += "{{" + sign(["", "-"]) + " 'v' " + sign(["", "-"]) + "}}"
        elif kind == 1:
            text += "{#" + sign(["", "-", "+"]) + " c " + sign(["", "-", "+"]) + "#}"
        elif kind == 2:
            text += "{%" + sign(["", "-", "+"]) + " if 1 " + sign(["", "-", "+"]) + "%}"
            opened += 1
        elif opened:
            text += "{%" + sign(["", "-", "+"]) + " endif " + sign(["", "-", "+"]) + "%}"
            opened -= 1
        text += space()
    for _ in range(opened):
        text += "{%" + sign(["", "-", "+"]) + " endif " + sign(["", "-", "+"]) + "%}" + space()
    return text


def render(template, messages):
    rendered, _ = render_jinja_template(conversations=[messages], chat_template=template, **VARIABLES)
    return {"template": template, "messages": messages, "rendered": rendered[0]}


if __name__ == "__main__":
    draw = random.Random(1)
    cases = [render(template, messages) for template in TEMPLATES for messages in (PAIR, SYSTEM + PAIR)]
    cases += [render(random_template(draw), PAIR[:1]) for _ in range(150)]
    lines = ",\n".join(json.dumps(case) for case in cases)
    (HERE / "templates.json").write_text(f'{{"variables": {json.dumps(VARIABLES)}, "cases": [\n{lines}\n]}}\n')
