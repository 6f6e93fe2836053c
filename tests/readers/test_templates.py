"""Chat templates: what reaches out of them is told however its name is made, and what only lays out messages is not."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from jinja2 import Environment
from jinja2.lexer import TOKEN_FLOAT, TOKEN_INTEGER, TOKEN_NAME, TOKEN_STRING

from inspector.readers.checks.jinja_tokens import blocks_of
from inspector.readers.checks.templates import observe_template
from inspector.survey.survey import survey_folder
from tests.readers.real_templates import REAL

# Each names what Jinja without a sandbox follows; k is looked up where nothing else betrays it.
REACHING = [
    "{{ (messages|map('upper')).gi_frame.f_builtins['eval']('1+41') }}",
    "{{ (messages|select).gi_frame.f_back.f_globals }}",
    "{{ gi_frame.f_back.f_globals }}",
    "{{ ([x]|map(attribute='_'*2~'globals'~'_'*2)|first).os }}",
    "{% set k='_'*2~'globals'~'_'*2 %}{{ ([x]|map(attribute=k)|first).os }}",
    "{% set k='_'*2~'globals'~'_'*2 %}{{ ([x]|map('attr',k)|first).os }}",
    "{{ [x]|map('attr', k) }}",
    "{% set k='_'*2~'globals'~'_'*2 %}{% for a in [x]|groupby(k) %}{% endfor %}",
    "{{ [x]|sort(attribute='__class__') }}",
    "{{ [x]|selectattr('__class__.__base__') }}",
    "{{ [x]|sum('__class__') }}",
    "{% set c='_'~'_cla'~'ss_'~'_' %}{{ ''[c] }}",
    "{% set c='_'+'_cla'+'ss_'+'_' %}{{ ''[c] }}",
    "{{ x['__glo' 'bals__'] }}",
    "{{ x['\\137\\137globals\\137\\137'] }}",
    "{{ x['\\x5f\\x5fclass\\x5f\\x5f'] }}",
    "{{ x['\\N{LOW LINE}\\N{LOW LINE}globals\\N{LOW LINE}\\N{LOW LINE}'] }}",
    "{{ x['..globals..'.replace('.','_')] }}",
    "{{ x['_'.join(['','','globals','',''])] }}",
    "{{ x[['','','globals','','']|join('_')] }}",
    "{{ x[['__globals__']|first] }}",
    "{{ x['__globals__' if 1 else 2] }}",
    "{{ x[nope|default('__globals__')] }}",
    "{{ x['%c%cglobals%c%c'|format(95,95,95,95)] }}",
    "{{ x['%sglobals%s'%('_'*2,'_'*2)] }}",
    "{{ x['{0}{0}globals{0}{0}'.format('_')] }}",
    "{{ x['__GLOBALS__'|lower] }}",
    "{{ x[('__globals__',)[0]] }}",
    "{% set d={'a':'__globals__'} %}{{ x[d.a] }}",
    "{% set ns=namespace(a='__globals__') %}{{ x[ns.a] }}",
    "{% set ns=namespace() %}{% set ns.a='__globals__' %}{{ x[ns.a] }}",
    "{% set k %}__globals__{% endset %}{{ x[k] }}",
    "{% set k | lower %}__GLOBALS__{% endset %}{{ x[k] }}",
    "{% for k in ['_'*2~'globals'~'_'*2] %}{{ x[k] }}{% endfor %}",
    "{% macro a(k) %}{{ x[k] }}{% endmacro %}{{ a('_'*2~'globals'~'_'*2) }}",
    "{% macro a(k='__globals__') %}{{ x[k] }}{% endmacro %}",
    "{% with k = '__globals__' %}{{ x[k] }}{% endwith %}",
    "{{ x . __globals__ }}",
    "{{ x.{# y #}__globals__ }}",
    "{{ x.get('__globals__') }}",
    "{{ '{0.__class__}'.format(x) }}",
    "{% set f='{0.__cla'~'ss__}' %}{{ f.format(x) }}",
    "{{ 'x'.format_map(y) }}",
    "{% include '/etc/passwd' %}",
    "{% include '../../secret' %}",
    "{{ '}}' }}{{ x.__class__ }}",
    "{% if x.__class__ %}{% endif %}",
    "{% filter attr('__class__') %}{% endfilter %}",
    "{{ $ x.__class__ }}",
]
DOUBTFUL = [
    "{{ ''[x ~ '_class__'] }}",
    "{{ ''['__CLASS__'|swap_it] }}",
    "{{ ''['__ssalc__'[::-1]] }}",
    "{% set u %}{{ '_' }}{% endset %}{{ ''[u] }}",
    "{% set k = '_' %}{% if y %}{% set k = '__class' %}{% endif %}{{ ''[k] }}",
    "{{ [x]|map(attribute=a ~ b) }}",
    "{% include 'header.txt' %}",
    "{% import 'os' %}",
    "{{ " + "(" * 100 + "''" + ")" * 100 + " }}",
]


@pytest.mark.parametrize("text", REACHING)
def test_a_template_that_reaches_pythons_inside_is_an_error(text: str) -> None:
    finding = observe_template(text, "chat_template")
    assert finding is not None
    assert (finding.id, finding.severity.value) == ("template-reaches-out", "error")


@pytest.mark.parametrize("text", DOUBTFUL)
def test_a_name_made_of_pieces_that_are_not_followed_is_a_warning(text: str) -> None:
    finding = observe_template(text, "chat_template")
    assert finding is not None
    assert (finding.id, finding.severity.value) == ("template-may-reach-out", "warning")


@pytest.mark.parametrize("name", REAL)
def test_a_published_template_is_silent(name: str) -> None:
    assert observe_template(REAL[name], name) is None


def test_text_that_is_only_put_out_may_say_what_it_likes() -> None:
    for text in ("{{ '__init__' }}", "{{ 'call eval(x) or open(f)' }}", "{# x.__class__ #}", "x.__class__ {{ a }}"):
        assert observe_template(text, "chat_template") is None


@pytest.mark.parametrize("name", REAL)
def test_tokens_are_those_of_jinja(name: str) -> None:
    kinds = {TOKEN_STRING: "string", TOKEN_NAME: "name", TOKEN_INTEGER: "int", TOKEN_FLOAT: "float"}
    theirs = [
        (kinds.get(token.type, "op"), str(token.value))
        for token in Environment()._tokenize(REAL[name], None)
        if token.type not in ("data", "variable_begin", "variable_end", "block_begin", "block_end")
    ]
    ours = [(t.kind, t.text) for block in blocks_of(REAL[name]) for t in block.tokens or [None]]  # type: ignore[union-attr]
    assert ours == theirs


def test_a_template_made_to_grow_is_followed_in_few_steps() -> None:
    doubling = "{% set a = ['_'] %}" + "{% set a = [a, a] %}" * 200 + "{{ x[a] }}"
    texts = "{% set a = '_' %}" + "{% set a = a * 100 %}{% set a = a.replace('_', a) %}" * 50 + "{{ x[a] }}"
    tables = "{% set a = {'k': '_'} %}" + "{% set a = {'k': a, 'l': a} %}" * 200 + "{{ x[a.k] }}"
    for text in (
        doubling,
        texts,
        tables,
        "{{ '%099999999d' % 1 }}",
        "{{ " + "[" * 50_000,
        "{% set a = " + "a|b" * 50_000,
    ):
        observe_template(text, "chat_template")


def test_no_damage_to_a_template_makes_its_reading_fail() -> None:
    rng = random.Random(0)
    for text in [*REAL.values(), *REACHING]:
        for _ in range(20):
            at = rng.randrange(len(text))
            observe_template(text[:at] + rng.choice("{}[]()|'\"%~.=, ifor0") + text[at + rng.randrange(3) :], "t")


def test_a_template_file_is_told_as_one_and_json_is_unescaped(tmp_path: Path) -> None:
    (tmp_path / "a.jinja").write_text(REAL["CHATML"])
    (tmp_path / "b.json").write_text(
        '{"chat_template": "{% set c=\\"_\\" ~ \\"_class_\\" ~ \\"_\\" %}{{ \\"\\"[c] }}"}'
    )
    rows = {row.path: row for row in survey_folder(tmp_path).rows}
    assert "Jinja template" in rows["a.jinja"].says
    assert rows["b.json"].finding == "template-reaches-out"
