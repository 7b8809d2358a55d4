"""The mistakes that `make mutants` plants: in a C or Python file, one line each, within the functions."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

# C: the code -> what is planted instead. Comments and strings are left alone.
SWAPS: tuple[tuple[str, str], ...] = (
    (r"(?<![<\-])<=(?!=)", "<"),
    (r"(?<![>\-])>=(?!=)", ">"),
    (r"(?<![<\-=])<(?![<=])(?=\s)", "<="),
    (r"(?<![>\-=])>(?![>=])(?=\s)", ">="),
    (r"==", "!="),
    (r"!=", "=="),
    (r"&&", "||"),
    (r"\|\|", "&&"),
    (r"\+\+", "--"),
    (r"(?<!-)--(?!-)", "++"),
    (r"\+=", "-="),
    (r"-=", "+="),
    (r"\|=", "="),
    (r"(?<=\s)\+(?=\s)", "-"),
    (r"(?<=\s)-(?=\s)", "+"),
    (r"\btrue\b", "false"),
    (r"\bfalse\b", "true"),
    (r"(?<=[(,=&| ])!(?=[\w(])", ""),
    (r"\bOUTCOME_OK\b", "OUTCOME_REFUSED"),
    (r"\bOUTCOME_REFUSED\b", "OUTCOME_UNKNOWN"),
    (r"(?<=[=?:,( ])0(?=[;,): ])", "1"),
    (r"(?<=[=?:,(\- ])1(?=[;,): ])", "0"),
)
CONDITION = re.compile(r"\b(?:if|while) \(")
CALL = re.compile(
    r"^\s+(?!return\b|if\b|for\b|while\b|else\b|case\b|default\b|static\b)[\w\->.()*&\[\] ,?:]+"
    r"(?:[+|-]?=.*|\(.*\)|\+\+|--);$"
)
GUARD = re.compile(r"^\s+if \(.*\) (?:return\b.*|continue|break);$")
WORDS = re.compile(r"snprintf|check_name|check_grant|violate\(my|json_|assert\(|abort\(\)|\bfree\(|\bclose\(")

# Python: the operator of a comparison -> what is planted instead.
PYTHON_SWAPS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}


@dataclass(frozen=True)
class Mutant:
    """A line of a file, as it is and as mutated, and the name of the file (name_of)."""

    file: str
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.before.strip()}  ->  {self.after.strip() or '(nothing)'}"

    @property
    def mutated(self) -> str:
        """The line as mutated; a removed line is named by what it was."""
        after = self.after.strip()
        return after if after not in ("", "pass") else f"(nothing): {self.before.strip()}"


def name_of(path: Path) -> str:
    """Without its suffix, but for a header: so a name occurs once."""
    return path.name if path.suffix == ".h" else path.stem


def mutants_of(path: Path) -> Iterator[Mutant]:
    text = path.read_text()
    for number, before, after in python_changes(text) if path.suffix == ".py" else c_changes(text):
        yield Mutant(name_of(path), number, before, after)


# --- C ---


def code_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines within functions, without comments, strings and calls that only write text."""
    inside = comment = False
    header = ""
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        comment |= bare.startswith("/*")
        header = line if not comment and line[:1].isalpha() else header
        if not inside and not comment and line.endswith("{") and header:
            inside = not header.startswith(("struct", "enum", "union", "typedef", "const", "static const"))
            header = ""
        elif line == "}":
            inside = False
        elif inside and not comment and bare and '"' not in bare and not WORDS.search(bare):
            yield number, line.split("/*")[0].rstrip()
        comment &= "*/" not in bare


def negations(line: str) -> Iterator[str]:
    """`if (a && b) x;` -> `if (!(a && b)) x;`"""
    for found in CONDITION.finditer(line):
        depth, end = 1, found.end()
        while depth and end < len(line):
            depth += {"(": 1, ")": -1}.get(line[end], 0)
            end += 1
        if depth == 0:
            yield f"{line[: found.end()]}!({line[found.end() : end]}{line[end - 1 :]}"


def c_changes(text: str) -> Iterator[tuple[int, str, str]]:
    for number, line in code_lines(text):
        for pattern, swap in SWAPS:
            for found in re.finditer(pattern, line):
                yield number, line, line[: found.start()] + swap + line[found.end() :]
        for after in negations(line):
            yield number, line, after
        if CALL.match(line) or GUARD.match(line):
            yield number, line, ""


# --- Python ---


def python_changes(text: str) -> Iterator[tuple[int, str, str]]:
    lines = text.splitlines()
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    for node in (inner for function in functions for part in function.body for inner in ast.walk(part)):
        for place, swap in python_swaps(lines, node):
            if place.lineno == place.end_lineno:
                line = lines[place.lineno - 1]
                yield place.lineno, line, replaced(line, place, swap)


def python_swaps(lines: list[str], node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """What a node can be mutated to: the part that is replaced, and its new text."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        old, new = PYTHON_SWAPS[type(node.ops[0])]
        yield node, with_operator(lines, node, (node.left, node.comparators[0]), old, new)
    elif isinstance(node, ast.BoolOp):
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for pair in pairwise(node.values):
            yield node, with_operator(lines, node, pair, old, new)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node, source_of(lines, node.operand)
    elif isinstance(node, (ast.If, ast.While, ast.IfExp)):
        yield from negated(lines, node.test)
    elif isinstance(node, ast.comprehension):
        yield from (each for test in node.ifs for each in negated(lines, test))
    elif isinstance(node, ast.Constant) and type(node.value) in (bool, int) and node.value in (0, 1):
        yield node, repr(type(node.value)(not node.value))
    elif isinstance(node, (ast.Expr, ast.AugAssign)) and not isinstance(node.value, ast.Constant):
        yield node, "pass"


def negated(lines: list[str], test: ast.expr) -> Iterator[tuple[ast.expr, str]]:
    """Not where another mutant does the same."""
    if not isinstance(test, (ast.Compare, ast.UnaryOp)):
        yield test, f"not ({source_of(lines, test)})"


def source_of(lines: list[str], node: ast.expr) -> str:
    """Of a node on one line; a mutant elsewhere is not planted."""
    return lines[node.lineno - 1].encode()[node.col_offset : node.end_col_offset].decode()


def replaced(line: str, node: ast.expr | ast.stmt, text: str) -> str:
    raw = line.encode()
    return (raw[: node.col_offset] + text.encode() + raw[node.end_col_offset :]).decode()


def with_operator(lines: list[str], node: ast.expr, operands: tuple[ast.expr, ast.expr], old: str, new: str) -> str:
    """The source of an expression with another operator between two of its operands."""
    left, right = operands
    raw = lines[node.lineno - 1].encode()
    middle = raw[left.end_col_offset : right.col_offset].decode().replace(old, new, 1)
    return (
        raw[node.col_offset : left.end_col_offset] + middle.encode() + raw[right.col_offset : node.end_col_offset]
    ).decode()
