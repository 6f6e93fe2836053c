"""What the JSON of a torch.export program says: inputs, outputs, parameters, operators. Nothing is evaluated.

Source: torch/_export/serde/schema.py (2.15) and its earlier versions; torch/_export/serde/serialize.py says what a
real load evaluates: symbolic sizes through sympy.sympify, targets through getattr, guards through exec.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

# torch/_export/serde/schema.py, ScalarType
DTYPES: dict[int, str] = {
    1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32", 8: "float64",
    9: "complex32", 10: "complex64", 11: "complex128", 12: "bool", 13: "bfloat16", 28: "uint16",
    29: "float8_e4m3fn", 30: "float8_e5m2", 31: "float8_e4m3fnuz", 32: "float8_e5m2fnuz", 33: "float8_e8m0fnu",
    34: "uint32", 35: "uint64",
}  # fmt: skip
_GRAPH_CHARACTERS = 500_000
_MOST_NODES = 200_000
# Names of numbers, functions of torch.utils._sympy.functions, arithmetic and comparisons.
_EXPRESSION = re.compile(r"[A-Za-z0-9_+\-*/%(),.<>=!&|~ ]*")
_QUOTED_NAME = re.compile(r"'([A-Za-z_]\w{0,80})'")
_SYMBOL = re.compile(r"Symbol\('(\w+)'[^()]*\)|(?:Integer|Float)\((-?[\w.]+)\)")
# Calls, dunder names, attributes, calls of what is in parentheses.
# Whole words and possessive, so that a long one is looked at once and not from each of its letters.
_WORD = re.compile(r"(?<!\w)\w++(?=\s*+\()|(?<!\w)(?=\w*?__)\w++|\.\s*+[A-Za-z_]|\)(?=\s*+\()|\blambda\b")
_FUNCTIONS = frozenset(
    {
        "FloorDiv", "ModularIndexing", "Where", "PythonMod", "Mod", "CleanDiv", "CeilToInt", "FloorToInt",
        "CeilDiv", "LShift", "RShift", "PowByNatural", "FloatPow", "FloatTrueDiv", "IntTrueDiv",
        "IsNonOverlappingAndDenseIndicator", "TruncToFloat", "TruncToInt", "RoundToInt", "RoundDecimal", "ToFloat",
        "Identity", "Max", "Min", "Eq", "Ne", "Gt", "Lt", "Ge", "Le", "And", "Or", "Not", "Abs", "ceiling",
        "floor", "sqrt", "log", "exp", "Pow", "Add", "Mul", "Piecewise", "BitwiseFn_bitwise_and",
        "BitwiseFn_bitwise_or", "BitwiseFn_bitwise_xor", "OpaqueUnaryFn_sqrt", "OpaqueUnaryFn_cos",
        "OpaqueUnaryFn_sin", "OpaqueUnaryFn_tan", "OpaqueUnaryFn_exp", "OpaqueUnaryFn_log", "OpaqueUnaryFn_log2",
        "OpaqueUnaryFn_cosh", "OpaqueUnaryFn_sinh", "OpaqueUnaryFn_tanh", "OpaqueUnaryFn_asin",
        "OpaqueUnaryFn_acos", "OpaqueUnaryFn_atan", "min", "max", "and", "or", "not", "Integer", "Float",
        "Symbol", "Rational",
    }
)  # fmt: skip


@dataclass(slots=True, kw_only=True)
class ProgramFacts:
    """One program. inputs, outputs: (name, "s77x3x8x8 float32"). kinds: by dotted name "parameter", "buffer",
    "non-persistent buffer", "tensor constant", "custom object". graph: the nodes as text, one a line.

    operators: how often each target occurs. odd: expressions, targets and guards that are no arithmetic.
    """

    metadata: list[tuple[str, str]] = field(default_factory=list)
    inputs: list[tuple[str, str]] = field(default_factory=list)
    outputs: list[tuple[str, str]] = field(default_factory=list)
    kinds: dict[str, str] = field(default_factory=dict)
    operators: Counter[str] = field(default_factory=Counter)
    graph: str = ""
    graph_nbytes: int = 0
    guards: list[str] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)


def read_program(program: object) -> ProgramFacts:
    """The facts of one program's JSON. Anything that is not where the schema has it is left out."""
    facts = ProgramFacts()
    if not isinstance(program, dict):
        return facts
    module = _mapping(program.get("graph_module"))
    graph = _mapping(module.get("graph"))
    values = _mapping(graph.get("tensor_values"))
    _note_versions(facts, program)
    _note_signature(facts, _mapping(module.get("signature")), values)
    _note_first_signature(facts, _mapping(module.get("signature")), values)
    _note_graph(facts, graph)
    for name, value in _mapping(program.get("range_constraints")).items():
        bounds = _mapping(value)
        text = f"{_short(bounds.get('min_val'))} to {_short(bounds.get('max_val'))}"
        facts.metadata.append((f"size {name[:60]}", text))
        _note_expression(facts, name)
        if len(facts.metadata) > 200:
            break
    guards = program.get("guards_code")
    if isinstance(guards, list):
        facts.guards = [g for g in guards if isinstance(g, str)][:10_000]
    _note_expressions(facts, program)
    return facts


def size_text(size: object) -> str:
    """A size as the program has it: "4", or the expression of a symbolic one."""
    entry = _mapping(size)
    if type(entry.get("as_int")) is int:
        return str(entry["as_int"])[:40]
    expression = _mapping(entry.get("as_expr")).get("expr_str")
    if not isinstance(expression, str):
        return "?"
    return _SYMBOL.sub(lambda found: found[1] or found[2], expression[:2000])[:80]


def tensor_text(meta: object) -> str:
    """ "s77x3x8x8 float32" of a TensorMeta."""
    entry = _mapping(meta)
    entry = _mapping(entry["meta"]) if "meta" in entry else entry  # So up to 2.1.
    sizes = entry.get("sizes")
    if not isinstance(sizes, list):
        return "?"
    code = entry.get("dtype")
    dtype = DTYPES.get(code, "unknown type") if type(code) is int else "unknown type"
    return f"{'x'.join(size_text(s) for s in sizes[:64]) or 'scalar'} {dtype}"


def _note_versions(facts: ProgramFacts, program: dict[str, Any]) -> None:
    schema = program.get("schema_version")
    if isinstance(schema, dict):
        facts.metadata.append(("schema version", f"{_short(schema.get('major'))}.{_short(schema.get('minor'))}"))
    elif schema is not None:
        facts.metadata.append(("schema version", _short(schema)))
    if isinstance(program.get("torch_version"), str):
        facts.metadata.append(("torch version", _short(program["torch_version"])))
    for name, number in list(_mapping(program.get("opset_version")).items())[:16]:
        facts.metadata.append((f"opset {name[:60]}", _short(number)))
    dialect = program.get("dialect") or program.get("verifiers")
    if dialect:
        facts.metadata.append(
            ("dialect", _short(", ".join(map(str, dialect)) if isinstance(dialect, list) else dialect))
        )


def _short(value: object) -> str:
    return (
        str(value)[:80]
        if isinstance(value, str | float | bool) or value is None
        else (str(value)[:80] if type(value) is int and value.bit_length() < 256 else type(value).__name__)
    )


_SPECS = {
    "parameter": ("parameter_name", "parameter"),
    "buffer": ("buffer_name", "buffer"),
    "tensor_constant": ("tensor_constant_name", "tensor constant"),
    "custom_obj": ("custom_obj_name", "custom object"),
}


def _note_signature(facts: ProgramFacts, signature: dict[str, Any], values: dict[str, Any]) -> None:
    for spec in _items(signature.get("input_specs")):
        for key, entry in _mapping(spec).items():
            inner = _mapping(entry)
            if key in _SPECS:
                label, kind = _SPECS[key]
                name = inner.get(label)
                if isinstance(name, str):
                    persistent = inner.get("persistent", True)
                    facts.kinds[name] = kind if persistent is not False else "non-persistent buffer"
            elif key == "user_input" and len(facts.inputs) < 200:
                facts.inputs.append(_argument(_mapping(inner.get("arg")), values))
    for spec in _items(signature.get("output_specs")):
        for key, entry in _mapping(spec).items():
            inner = _mapping(entry)
            if key == "user_output" and len(facts.outputs) < 200:
                facts.outputs.append(_argument(_mapping(inner.get("arg")), values))


def _note_first_signature(facts: ProgramFacts, signature: dict[str, Any], values: dict[str, Any]) -> None:
    """The signature of 2.1, which maps names of inputs to names of tensors."""
    for key, kind in (("inputs_to_parameters", "parameter"), ("inputs_to_buffers", "buffer")):
        for name in _mapping(signature.get(key)).values():
            if isinstance(name, str):
                facts.kinds[name] = kind
    for key, shown in (("user_inputs", facts.inputs), ("user_outputs", facts.outputs)):
        for name in _items(signature.get(key))[:200]:
            if isinstance(name, str):
                shown.append((name[:200], tensor_text(values.get(name))))


def _argument(argument: dict[str, Any], values: dict[str, Any]) -> tuple[str, str]:
    name = _mapping(argument.get("as_tensor")).get("name")
    if isinstance(name, str):
        return name[:200], tensor_text(values.get(name))
    return "constant", _value_text(argument, 3)[:200]


def _note_graph(facts: ProgramFacts, graph: dict[str, Any]) -> None:
    lines: list[str] = []
    stack = [graph]
    seen = 0
    while stack:
        for node in _items(stack.pop().get("nodes")):
            seen += 1
            if seen > _MOST_NODES or not isinstance(node, dict):
                continue
            target = str(node.get("target", ""))[:300]
            facts.operators[target] += 1
            arguments = []
            for argument in _items(node.get("inputs"))[:200]:
                entry = _mapping(argument)
                value = _mapping(entry.get("arg"))
                inner = _mapping(_mapping(value.get("as_graph")).get("graph"))
                if inner and len(stack) < 1000:
                    stack.append(inner)
                label = str(entry.get("name", ""))[:60]
                arguments.append(f"{label}={_value_text(value, 3)}" if label else _value_text(value, 3))
            outputs = ", ".join(_value_text(_mapping(o), 3) for o in _items(node.get("outputs"))[:50])
            line = f"{outputs or '_'} = {target}({', '.join(arguments)})"[:2000]
            if facts.graph_nbytes <= _GRAPH_CHARACTERS:
                lines.append(line)
            facts.graph_nbytes += len(line.encode("utf-8", "replace")) + 1
    facts.graph = "\n".join(lines)


def _value_text(argument: dict[str, Any], depth: int) -> str:
    """An argument in short; recursion ends at the given depth."""
    for key, value in argument.items():
        if value is None:
            continue  # 2.1 writes all members of a union, the others as null.
        if key == "as_none":
            return "None"
        if key in ("as_tensor", "as_custom_obj", "as_graph"):
            return str(_mapping(value).get("name", "?"))[:100]
        if isinstance(value, dict):
            named = value.get("as_name", value.get("as_int", value.get("as_float", value.get("name"))))
            return _short(named) if named is not None else _short(value.get("type", "…"))
        if isinstance(value, list):
            parts = [_value_text(v, depth - 1) if isinstance(v, dict) and depth else _short(v) for v in value[:16]]
            return f"[{', '.join(parts)}{', …' if len(value) > 16 else ''}]"
        if key == "as_string":
            return repr(str(value)[:100])
        if key == "name" and isinstance(value, str):
            return value[:100]
        return _short(value)
    return "None" if "as_none" in argument else "?"


def _note_expressions(facts: ProgramFacts, program: dict[str, Any]) -> None:
    """Every expr_str of the program, wherever it stands; each different text once."""
    stack: list[object] = [program]
    seen: set[str] = set()
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            text = item.get("expr_str")
            if isinstance(text, str) and text not in seen:
                seen.add(text)
                _note_expression(facts, text)
            stack.extend(v for v in item.values() if isinstance(v, dict | list))
        elif isinstance(item, list):
            stack.extend(v for v in item if isinstance(v, dict | list))


def _note_expression(facts: ProgramFacts, text: str) -> None:
    if len(facts.odd) < 200 and not is_arithmetic(text):
        facts.odd.append(f'the expression "{text[:80]}"')


def is_arithmetic(text: str) -> bool:
    """Whether a symbolic size is numbers, names and known functions only: sympy evaluates it as Python otherwise."""
    # sympy.srepr writes symbols as Symbol('s77', positive=True); a quoted plain name is a name.
    text = _QUOTED_NAME.sub(r"\1", text)
    if len(text) > 20_000 or not _EXPRESSION.fullmatch(text):
        return False
    return all(word in _FUNCTIONS for word in _WORD.findall(text))


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
