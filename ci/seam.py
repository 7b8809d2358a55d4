"""Writes harness/lockstorm/native/seam.py, the C library as Python sees it, from the C headers. `make` runs it when a
header has changed; it needs only Python and the C compiler.

To give Python another struct or enum: a line in CLASSES or ENUMS. All functions of HEADERS are declared.
"""

import ctypes
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "harness" / "lockstorm" / "native" / "seam.py"
HEADERS = (
    "harness/history/history.h",
    "harness/scheduler/scheduler.h",
    "harness/scheduler/stall_sentinel.h",
    "harness/client/validity.h",
    "harness/process/spawn.h",
    "faults/common/fault.h",
    "faults/server/postgres.h",
    "harness/lockstorm/native/describe_tables.h",
    "harness/lockstorm/native/judge_trial.h",
)
TYPES_ONLY = ("checkers/engine/policy.h",)  # of these, and of what they include, Python calls nothing
# The structs that Python reads or fills. Both sentences are one class: a pointer to the larger one will do for both.
CLASSES = {
    "history_record": "Record",
    "history_settings": "Settings",
    "history_error": "Message",
    "fault_report": "Message",
    "step": "Step",
    "step_result": "StepResult",
    "task_slot": "TaskSlot",
    "shared_page": "SharedPage",
    "stall": "Stall",
    "fault_driver": "FaultDriver",
    "fault_option": "FaultOption",
    "fault_target": "FaultTarget",
    "fault": "FaultTable",
    "policy": "JudgingPolicy",
}
ENUMS = {
    "outcome": ("Outcome", "OUTCOME_"),
    "history_time": ("TimeKind", "HISTORY_TIME_"),
    "history_kind": ("Kind", "HISTORY_"),
    "history_object": ("Object", "HISTORY_OBJECT_"),
    "history_flag": ("Flag", "HISTORY_FLAG_"),
    "history_state": ("ReaderState", "HISTORY_"),
    "task_state": ("TaskState", "TASK_"),
    "step_kind": ("StepKind", "STEP_"),
    "step_varied": ("Varied", "STEP_VARIES_"),
    "scheduler_result": ("RunResult", "SCHEDULER_"),
    "stall_kind": ("StallKind", "STALL_"),
    "fault_moment": ("Moment", "FAULT_"),
}
FLAGS = ("history_flag", "step_varied")
SCALARS = {
    "_Bool": "c.c_bool",
    "int": "c.c_int",
    "unsigned": "c.c_uint",
    "char": "c.c_char",
    "size_t": "c.c_size_t",
    "pid_t": "c.c_int",
    "void": "None",
    **{f"{sign}int{bits}_t": f"c.c_{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
WIDTH = 120
HEAD = '''"""The C library as Python sees it. Made from the C headers by ci/seam.py, which `make` runs: do not edit."""

import ctypes as c
from enum import IntEnum, IntFlag
from typing import Any
'''
QUALIFIERS = re.compile(r"\b(?:const|_Atomic|volatile|extern|struct|enum)\b")
FUNCTION_POINTER = re.compile(r"(?P<result>.*?)\(\*\s*(?P<name>\w+)\)\s*\((?P<parameters>.*)\)$")
DECLARATION = re.compile(r"(?P<result>[\w\s*]*?)(?P<name>\w+)\s*\((?P<parameters>.*)\)$")


class Unseen(Exception):
    """A type that Python cannot pass, because the struct is in no line of CLASSES."""


class Headers:
    """What the headers declare: the bodies of structs and enums, the values of enumerators, and the functions."""

    def __init__(self) -> None:
        self.structs: dict[str, str] = {}
        self.enums: dict[str, dict[str, int]] = {}
        self.values: dict[str, int] = {}
        self.functions: dict[str, tuple[str, str]] = {}
        for text in _declarations(_preprocessed(HEADERS)):
            self._read(text)
        called = dict(self.functions)
        for text in _declarations(_preprocessed(TYPES_ONLY)):
            self._read(text)
        self.functions = called

    def _read(self, text: str) -> None:
        if body := re.match(r"(struct|enum)\s*(\w*)\s*\{(.*)\}$", text):
            kind, name, inside = body.groups()
            if kind == "struct":
                self.structs[name] = inside
            else:
                self._read_enum(name, inside)
        elif "{" not in text and "..." not in text and "[" not in text and (found := DECLARATION.match(text)):
            self.functions[found["name"]] = (found["result"], found["parameters"])

    def _read_enum(self, name: str, inside: str) -> None:
        value, members = -1, {}
        for each in filter(None, (part.strip() for part in inside.split(","))):
            member, _, expression = each.partition("=")
            value = self.number(expression) if expression else value + 1
            members[member.strip()] = value
            self.values[member.strip()] = value
        self.enums[name] = members

    def number(self, expression: str) -> int:
        return int(eval(expression, {"__builtins__": {}}, self.values))

    def type_of(self, text: str) -> str:
        """The type in ctypes of a declaration without its name."""
        text = re.sub(r"_Alignas\(\w+\)", "", text)
        stars, constant = text.count("*"), "const" in text
        base = QUALIFIERS.sub("", text.replace("*", " ")).strip()
        if stars == 0:
            if base in self.enums:
                return "c.c_int"
            if base not in SCALARS and base not in CLASSES:
                raise Unseen(base)
            return SCALARS.get(base) or CLASSES[base]
        if base == "char":  # without const it is the caller's to free, or to be written to
            return "c.POINTER(c.c_char_p)" if stars == 2 else "c.c_char_p" if constant else "c.c_void_p"
        if stars > 1 or base == "void" or (base not in SCALARS and base not in CLASSES):
            return "c.c_void_p"
        return f"c.POINTER({SCALARS.get(base) or CLASSES[base]})"

    def parameters_of(self, text: str) -> list[str]:
        if text.strip() in ("", "void"):
            return []
        return [self.type_of(re.sub(r"(?<=[\s*])\w+$", "", each.strip()) if _is_named(each) else each)
                for each in text.split(",")]  # fmt: skip

    def fields_of(self, struct: str) -> list[tuple[str, str]]:
        fields = []
        for line in filter(None, (part.strip() for part in self.structs[struct].split(";"))):
            if pointer := FUNCTION_POINTER.match(line):
                types = [self.type_of(pointer["result"]), *self.parameters_of(pointer["parameters"])]
                fields.append((pointer["name"], f"c.CFUNCTYPE({', '.join(types)})"))
                continue
            first, *others = line.split(",")
            base = re.match(r"(.*?)\**\s*\w+(?:\[.*\])?$", first)
            assert base, line
            for declarator in (first.removeprefix(base[1]), *others):
                name = re.search(r"\w+(?=(?:\[.*\])?$)", declarator)
                assert name, line
                kind = self.type_of(base[1] + "*" * declarator.count("*"))
                length = re.search(r"\[(.*)\]", declarator)
                fields.append((name[0], f"{kind} * {self.number(length[1])}" if length else kind))
        return fields


def _is_named(parameter: str) -> bool:
    words = QUALIFIERS.sub("", parameter.replace("*", " ")).split()
    return len(words) > 1


def _preprocessed(headers: Sequence[str]) -> str:
    """The text of lockstorm's own headers, without that of the system's."""
    source = "".join(f'#include "{header}"\n' for header in headers)
    command = [*os.environ.get("CC", "cc").split(), "-E", "-std=c11", "-D_GNU_SOURCE", "-I.", "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, cwd=ROOT, check=True)
    kept, ours = [], False
    for line in done.stdout.splitlines():
        if marker := re.match(r'# \d+ "(?:\./)?([^"]*)"', line):
            ours = marker[1].startswith(("harness/", "faults/", "checkers/"))
        elif ours:
            kept.append(line)
    text = re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)|_Static_assert\(.*?\);", "", "\n".join(kept))
    return " ".join(text.split())


def _declarations(text: str) -> list[str]:
    """Top-level declarations, and definitions of inline functions, which end without a semicolon."""
    found, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "{") - (letter == "}")
        ends_body = letter == "}" and depth == 0 and text[start:at].lstrip().startswith("static inline")
        if depth == 0 and (letter == ";" or ends_body):
            found.append(text[start:at].strip())
            start = at + 1
    return found


def _enum_lines(headers: Headers, name: str) -> list[str]:
    called, prefix = ENUMS[name]
    lines = [f"class {called}({'IntFlag' if name in FLAGS else 'IntEnum'}):", f'    """enum {name}: {prefix}*"""', ""]
    members = {each.removeprefix(prefix): value for each, value in headers.enums[name].items()}
    return lines + [f"    {each} = {value}" for each, value in members.items() if each.split("_")[-1] != "COUNT"]


def _struct_lines(headers: Headers) -> list[str]:
    classes = {called: struct for struct, called in CLASSES.items()}  # of two: the later one
    lines = []
    for called, struct in classes.items():
        lines += ["", "", f"class {called}(c.Structure):", f'    """struct {struct}"""']
        if called == "Message":
            lines += ["", "    def __str__(self) -> str:", '        return bytes(self.text).decode(errors="replace")']
    lines += ["", ""]
    for called, struct in classes.items():
        fields = headers.fields_of(struct)
        alignment = re.search(r"_Alignas\((\d+)\)", headers.structs[struct])
        if alignment and (pad := -_size(lines, called, fields) % int(alignment[1])):
            fields.append(("_pad", f"c.c_char * {pad}"))
        lines += _fields_lines(called, fields)
    return lines


def _fields_lines(called: str, fields: list[tuple[str, str]]) -> list[str]:
    return [f"{called}._fields_ = (", *_filled([f'("{name}", {kind}),' for name, kind in fields]), ")"]


def _filled(items: list[str]) -> list[str]:
    """As many items in a line as fit."""
    lines = [""]
    for item in items:
        if lines[-1] and len(lines[-1]) + len(item) >= WIDTH:
            lines.append("")
        lines[-1] += f" {item}" if lines[-1] else f"    {item}"
    return lines


def _size(lines: list[str], called: str, fields: list[tuple[str, str]]) -> int:
    made: dict[str, Any] = {"c": ctypes}
    exec("\n".join([*lines, *_fields_lines(called, fields)]), made)
    return ctypes.sizeof(made[called])


def seam() -> str:
    headers = Headers()
    lines = [HEAD]
    for name in ENUMS:
        lines += ["", *_enum_lines(headers, name), ""]
    lines = lines[:-1] + _struct_lines(headers)
    lines += ["", "SIGNATURES: dict[str, tuple[Any, list[Any]]] = {"]
    for name, (result, parameters) in headers.functions.items():
        try:
            types = ", ".join(headers.parameters_of(parameters))
            lines.append(f'    "{name}": ({headers.type_of(result)}, [{types}]),')
        except Unseen:
            continue
    return "\n".join([*lines, "}"]) + "\n"


def main() -> None:
    TARGET.write_text(seam())


if __name__ == "__main__":
    main()
