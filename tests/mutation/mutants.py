"""Small faults in a module's source, one at a time: what mutation testing puts in.

Strings, annotations, decorators, what an error says and how an object shows itself are left as
they are. No fault moves a line, so that a function with a fault still lies where it lay.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple

OPERATORS: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
# Conditions on these are turned round by changing the operator.
TURNED = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
NAMES = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "minimum": "maximum",
    "maximum": "minimum",
    "fmin": "fmax",
    "fmax": "fmin",
    "floor": "ceil",
    "ceil": "floor",
}
SIDES = {"left": "right", "right": "left"}
SHOWING = {"__repr__", "__str__", "_repr_html_"}
# Arguments that decide how the work is done, never what comes out.
WITHOUT_EFFECT = {"strict", "workers"}
# What holds statements, or conditions, of its own.
COMPOUND = (
    ast.Module,
    ast.FunctionDef,
    ast.ClassDef,
    ast.If,
    ast.For,
    ast.While,
    ast.With,
    ast.withitem,
    ast.Try,
    ast.ExceptHandler,
    ast.arguments,
)
# Characters of an expression that are shown around a change.
AROUND = 36


class Mutant(NamedTuple):
    """One fault.

    Attributes
    ----------
    ordinal : int
        Its place among the module's faults.
    function : str
        Qualified name of the outermost function around it, "" for what runs at import.
    first, last : int
        Lines where that function begins, its decorators included, and ends.
    change : str
        What was, and what is; with a number where a function has several that look the same.
    lines : tuple of int
        The lines of the smallest statement or expression around it.
    digest : str
        Of the function's code, without comments and places.
    names : tuple of str
        For what runs at import: the names that it binds.
    default : bool
        Whether it is in the default of an argument.
    """

    ordinal: int
    function: str
    first: int
    last: int
    change: str
    lines: tuple[int, ...]
    digest: str
    names: tuple[str, ...]
    default: bool


class _Edit(NamedTuple):
    """`holder.field`, or one element of it, replaced; `shown` is the node that is described."""

    holder: ast.AST
    field: str
    index: int | None
    new: Any
    shown: ast.AST

    def swap(self, value: Any) -> Any:
        """Put a value in, and give back what was there."""
        if self.index is None:
            old = getattr(self.holder, self.field)
            setattr(self.holder, self.field, value)
        else:
            items = getattr(self.holder, self.field)
            old, items[self.index] = items[self.index], value
        return old


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _left_out(node: ast.AST) -> bool:
    """What holds nothing that matters: error messages, ways of showing, imports for types."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in SHOWING:
        return True
    if isinstance(node, ast.Assign):
        return {ast.unparse(target) for target in node.targets} <= {"__slots__", "__all__"}
    return isinstance(node, (ast.Raise, ast.JoinedStr)) or _is_type_checking(node)


def _children(node: ast.AST) -> Iterator[tuple[str, int | None, ast.AST]]:
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        if isinstance(value, ast.AST):
            yield field, None, value
        elif isinstance(value, list):
            for index, item in enumerate(value):
                if isinstance(item, ast.AST):
                    yield field, index, item


def _of_constant(node: ast.Constant) -> list[Any]:
    value = node.value
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1]
    if isinstance(value, float):
        return [2.0 * value if value else 1.0]
    return [SIDES[value]] if isinstance(value, str) and value in SIDES else []


def _edits(
    holder: ast.AST, field: str, index: int | None, node: ast.AST, shown: ast.AST
) -> Iterator[_Edit]:
    """The faults at one node; `shown` is the expression or statement that it is part of."""
    if isinstance(node, ast.Constant):
        # the operator beside it, or the sign, is changed already
        if isinstance(holder, (ast.BinOp, ast.Compare, ast.UnaryOp, ast.AugAssign)):
            return
        for value in _of_constant(node):
            yield _Edit(holder, field, index, ast.copy_location(ast.Constant(value), node), shown)
    elif type(node) in OPERATORS:
        yield _Edit(holder, field, index, OPERATORS[type(node)](), holder)
    elif isinstance(node, ast.UnaryOp):
        if not isinstance(node.op, ast.UAdd) and not isinstance(node.operand, ast.Constant):
            yield _Edit(holder, field, index, node.operand, shown)
    elif isinstance(node, ast.Call):
        for place, keyword in enumerate(node.keywords):
            handed_on = isinstance(keyword.value, ast.Name) and keyword.value.id == keyword.arg
            if handed_on and keyword.arg not in WITHOUT_EFFECT:
                rest = node.keywords[:place] + node.keywords[place + 1 :]
                yield _Edit(node, "keywords", None, rest, node)
    elif isinstance(node, (ast.Name, ast.Attribute)):
        name = "id" if isinstance(node, ast.Name) else "attr"
        if isinstance(holder, ast.Call) and field == "func" and getattr(node, name) in NAMES:
            yield _Edit(node, name, None, NAMES[getattr(node, name)], holder)
    elif isinstance(node, (ast.If, ast.IfExp)):
        test = node.test
        turned = isinstance(test, ast.Compare) and isinstance(test.ops[0], TURNED)
        if not turned and not isinstance(test, (ast.Constant, ast.UnaryOp, ast.BoolOp)):
            negated = ast.copy_location(ast.UnaryOp(ast.Not(), test), test)
            yield _Edit(node, "test", None, negated, test)
    elif isinstance(node, ast.AugAssign) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    ):
        # kept in the source, so that the function closes over the same names
        never = ast.If(ast.Constant(False), [node], [])
        ast.fix_missing_locations(ast.copy_location(never, node))
        yield _Edit(holder, field, index, never, node)


def _argument(arguments: ast.arguments, field: str, index: int) -> str:
    """The name of the argument that a default belongs to."""
    if field == "kw_defaults":
        return arguments.kwonlyargs[index].arg
    names = [*arguments.posonlyargs, *arguments.args]
    return names[len(names) - len(arguments.defaults) + index].arg


class _Outer(NamedTuple):
    """The outermost function around a node."""

    name: str
    node: ast.FunctionDef
    default: str = ""


def _walk(
    holder: ast.AST, shown: ast.AST, scope: tuple[str, ...], outer: _Outer | None
) -> Iterator[tuple[_Edit, _Outer | None]]:
    """Every edit below a node, and the outermost function around it."""
    for field, index, node in _children(holder):
        if _left_out(node):
            continue
        around, inside = outer, scope
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            inside = (*scope, node.name)
        if isinstance(node, ast.FunctionDef) and outer is None:
            around = _Outer(".".join(inside), node)
        if field in ("defaults", "kw_defaults"):
            name = _argument(holder, field, index)
            if name in WITHOUT_EFFECT:
                continue
            if outer is not None and holder is outer.node.args:
                around = outer._replace(default=name)
        if isinstance(holder, ast.keyword) and holder.arg in WITHOUT_EFFECT:
            continue
        # a constant is shown with the expression that it stands in
        part = node if isinstance(holder, COMPOUND) else shown
        for edit in _edits(holder, field, index, node, part):
            yield edit, around
        smallest = node if isinstance(node, (ast.expr, ast.stmt)) else part
        yield from _walk(node, smallest, inside, around)


def _described(edit: _Edit) -> str:
    """The part of an expression that changes, and what it becomes."""
    before = ast.unparse(edit.shown)
    if isinstance(edit.new, ast.If):
        return f"deleted: {' '.join(before.split())}"
    old = edit.swap(edit.new)
    after = ast.unparse(edit.new if edit.shown is old else edit.shown)
    edit.swap(old)
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    left, right = max(0, start - AROUND), max(0, end - AROUND)
    old, new = before[left : len(before) - right], after[left : len(after) - right]
    dots = "…" if left else "", "…" if right else ""
    return " → ".join(f"{dots[0]}{' '.join(text.split())}{dots[1]}" for text in (old, new))


def _bound(tree: ast.Module, node: ast.AST) -> tuple[str, ...]:
    """The names that the top-level statement around a node binds, or Class.name in a class."""

    def plain(statements: list[ast.stmt], prefix: str) -> tuple[str, ...]:
        for statement in statements:
            if not any(child is node for child in ast.walk(statement)):
                continue
            if isinstance(statement, ast.ClassDef):
                return plain(statement.body, f"{prefix}{statement.name}.")
            targets = getattr(statement, "targets", [getattr(statement, "target", None)])
            return tuple(f"{prefix}{t.id}" for t in targets if isinstance(t, ast.Name))
        return ()

    return plain(tree.body, "")


class Faults:
    """All faults of one module.

    Attributes
    ----------
    mutants : list of Mutant
    """

    def __init__(self, source: str, path: str) -> None:
        self._tree = ast.parse(source)
        self._path = path
        self._edits: list[_Edit] = []
        self._seen: Counter[tuple[str, str]] = Counter()
        self._digests: dict[int, str] = {}
        self.mutants: list[Mutant] = []
        for edit, outer in list(_walk(self._tree, self._tree, (), None)):
            names = () if outer else _bound(self._tree, edit.shown)
            if outer or names:
                self._add(edit, outer, names)

    def _add(self, edit: _Edit, outer: _Outer | None, names: tuple[str, ...]) -> None:
        function, node, default = outer or ("", edit.shown, "")
        if id(node) not in self._digests:
            self._digests[id(node)] = hashlib.sha256(ast.dump(node).encode()).hexdigest()[:16]
        change = _described(edit)
        if default:
            change = f"{default}: {change}"
        self._seen[function, change] += 1
        if self._seen[function, change] > 1:
            change += f" #{self._seen[function, change]}"
        self.mutants.append(
            Mutant(
                ordinal=len(self._edits),
                function=function,
                first=min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))]),
                last=node.end_lineno,
                change=change,
                lines=tuple(range(edit.shown.lineno, edit.shown.end_lineno + 1)),
                digest=self._digests[id(node)],
                names=names,
                default=bool(default),
            )
        )
        self._edits.append(edit)

    def following(self, names: list[str]) -> set[str]:
        """These names, and all that are computed from them at import."""
        found = set(names)
        for statement in self._tree.body:
            if isinstance(statement, (ast.Assign, ast.AnnAssign)):
                nodes = list(ast.walk(statement))
                read = {node.id for node in nodes if isinstance(node, ast.Name)}
                read |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
                read |= {node.arg for node in nodes if isinstance(node, ast.keyword) and node.arg}
                if read & found:
                    found |= set(_bound(self._tree, statement))
        return found

    def compiled(self, mutant: Mutant) -> CodeType:
        """The module's code with one fault."""
        edit = self._edits[mutant.ordinal]
        old = edit.swap(edit.new)
        try:
            return compile(self._tree, self._path, "exec")
        finally:
            edit.swap(old)
