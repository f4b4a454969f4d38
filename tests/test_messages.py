"""Every message of the package, read once: found by the syntax tree, rendered, and held against STYLE.md."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import sfumato

SOURCE = Path(sfumato.__file__).parent
WITHOUT_CALLS = (ast.Name, ast.Constant, ast.expr_context, ast.arg, ast.operator, ast.cmpop, ast.alias)

REFUSALS = {"refuse": "got x", "refuse_type": "got a value of type x", "refuse_state": "but x"}
"""The checks that always raise, and what each says was found."""
CHECKS = {
    "finite": "be a finite number",
    "positive": "be positive and finite",
    "non_negative": "be non-negative and finite",
    "probability": "be in [0, 1)",
    "unit_interval": "be strictly between 0 and 1",
    "share": "be from 0 to 1",
    "integer": "be an integer of at least x",
    "fraction": "be positive and finite",
    "instance": "be a x",
}
"""The checks that raise where a rule is broken, and their rules."""

# fmt: off
VERBS = frozenset({
    "accept", "accumulate", "add", "agree", "allow", "answer", "ask", "be", "begin", "belong", "bound",
    "call", "change", "charge", "choose", "come", "contain", "continue", "convert", "cost", "count",
    "cover", "depend", "describe", "determine", "differ", "divide", "draw", "each", "end", "exceed",
    "exist", "fall", "fit", "follow", "give", "go", "grow", "have", "hold", "include", "increase", "keep",
    "know", "lack", "lead", "lean", "leave", "lie", "limit", "list", "load", "make", "map", "match", "mean",
    "measure", "meet", "move", "name", "need", "nest", "not", "offer", "own", "pass", "protect", "prove",
    "reach", "read", "release", "report", "return", "rise", "run", "say", "set", "share", "show", "span",
    "stand", "start", "state", "stay", "sum", "support", "survive", "take", "train", "use", "work",
})
# fmt: on
"""The verbs that rules begin with."""
OLD_WORDS = re.compile(r"\b(told|kept|laws?|stray)\b")
LONGEST_REMEDY = 160
ALTERNATIVES = 16
DEPTH = 4


@dataclass(frozen=True, slots=True)
class Fault:
    """Where a message stands, and what is wrong with it."""

    line: int
    what: str


class Reader:
    """Reads the messages of one module."""

    def __init__(self, text: str) -> None:
        self.tree = ast.parse(text)
        self.found = 0
        self.direct = {
            alias.asname or alias.name
            for node in self.tree.body
            if isinstance(node, ast.ImportFrom) and node.module == "sfumato._check"
            for alias in node.names
        }

    def faults(self) -> Iterator[Fault]:
        """Yield what is wrong, in the order of the file's scopes."""
        yield from self._scope(self.tree, {})

    def _scope(self, scope: ast.AST, outer: dict[str, list[ast.expr]]) -> Iterator[Fault]:
        """Read one module, class or function, then those inside it; names are looked up outward."""
        local: dict[str, list[tuple[int, ast.expr]]] = {}
        inner, calls, raised = [], [], []
        pending = list(ast.iter_child_nodes(scope))
        while pending:
            node = pending.pop()
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner.append(node)
                continue
            if isinstance(node, ast.Assign | ast.AnnAssign):
                for name, value in _assigned(node):
                    local.setdefault(name, []).append((node.lineno, value))
            elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                raised.append(node.exc)
            elif isinstance(node, ast.Call) and self._check_called(node):
                calls.append(node)
            pending.extend(_with_calls(node))
        for call in calls:
            yield from self._call(call, outer | _before(local, call.lineno))
        for call in raised:
            yield from self._raised(call, outer | _before(local, call.lineno))
        for child in inner:
            yield from self._scope(
                child, outer | {name: [v for _, v in found] for name, found in local.items()}
            )

    def _check_called(self, call: ast.Call) -> str:
        """Return the name of the check that a call is of, or nothing."""
        function = call.func
        name = ""
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            name = function.attr if function.value.id == "_check" else ""
        elif isinstance(function, ast.Name) and function.id in self.direct:
            name = function.id
        return name if name in REFUSALS or name in CHECKS else ""

    def _call(self, call: ast.Call, names: dict[str, list[ast.expr]]) -> Iterator[Fault]:
        self.found += 1
        check = self._check_called(call)
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        order = {"instance": ("name", "value", "kind", "remedy"), "integer": ("name", "value")}.get(
            check, ("name", "rule", "value", "remedy") if check in REFUSALS else ("name", "value", "remedy")
        )
        given |= dict(zip(order, call.args, strict=False))
        if check == "refuse" and "value" in given and _is_phrase(given["value"]):
            yield Fault(call.lineno, f"refuse has the value {ast.unparse(given['value'])}, which is a phrase")
        if check in REFUSALS and "remedy" not in given:
            yield Fault(call.lineno, "a remedy is missing")
        rules = rendered(given["rule"], names) if "rule" in given else [CHECKS.get(check, "x")]
        found = [REFUSALS.get(check, "got x")]
        if check == "refuse_state":
            found = [f"but {clause}" for clause in rendered(given.get("value", given.get("found")), names)]
        remedies = rendered(given["remedy"], names) if "remedy" in given else [""]
        for rule in rules:
            yield from (Fault(call.lineno, what) for what in faults_of_rule(rule))
        for remedy in remedies:
            yield from (Fault(call.lineno, what) for what in faults_of_remedy(remedy, check in REFUSALS))
        parts = itertools.product(rendered(given.get("name"), names), rules, found, remedies)
        for name, rule, clause, remedy in itertools.islice(parts, ALTERNATIVES):
            text = f"{name} must {rule}, {clause}" + (f"; {remedy}" if remedy else "")
            yield from (Fault(call.lineno, what) for what in faults_of_text(text))

    def _raised(self, call: ast.Call, names: dict[str, list[ast.expr]]) -> Iterator[Fault]:
        if not call.args or not isinstance(call.args[0], ast.Constant | ast.JoinedStr | ast.BinOp):
            return
        self.found += 1
        for text in rendered(call.args[0], names):
            yield from (Fault(call.lineno, what) for what in faults_of_text(text))
            if text.endswith(".") and not text.endswith("..."):
                yield Fault(call.lineno, f"ends with a full stop: {text!r}")


def _with_calls(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node that may hold a call."""
    return (child for child in ast.iter_child_nodes(node) if not isinstance(child, WITHOUT_CALLS))


def _before(local: dict[str, list[tuple[int, ast.expr]]], line: int) -> dict[str, list[ast.expr]]:
    """Return for each name what was assigned last before a line; a loop's later one where nothing was."""
    return {
        name: [
            max((pair for pair in found if pair[0] <= line), default=found[0], key=lambda pair: pair[0])[1]
        ]
        for name, found in local.items()
    }


def _assigned(node: ast.Assign | ast.AnnAssign) -> Iterator[tuple[str, ast.expr]]:
    if node.value is not None:
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            yield from _pairs(target, node.value)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, other in zip(target.elts, value.elts, strict=False):
            yield from _pairs(one, other)


def _is_phrase(value: ast.expr) -> bool:
    """Return whether a value is none of the caller's: a text of the source, or a type or its name."""
    if isinstance(value, ast.Constant):
        return value.value is not None and not isinstance(value.value, bool)
    called = value.func if isinstance(value, ast.Call) else None
    return (
        isinstance(value, ast.JoinedStr)
        or (isinstance(value, ast.Attribute) and value.attr == "__name__")
        or (isinstance(called, ast.Name) and called.id == "type")
    )


def rendered(node: ast.expr | None, names: dict[str, list[ast.expr]], depth: int = 0) -> list[str]:
    """Return what an expression may say, ``x`` for what only a run knows."""
    texts = ["x"]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        texts = [node.value]
    elif isinstance(node, ast.JoinedStr):
        texts = _joined(
            [part.value if isinstance(part, ast.FormattedValue) else part for part in node.values],
            names,
            depth,
        )
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        texts = _joined([node.left, node.right], names, depth)
    elif isinstance(node, ast.IfExp):
        texts = rendered(node.body, names, depth) + rendered(node.orelse, names, depth)
    elif isinstance(node, ast.BoolOp):
        texts = [text for value in node.values for text in rendered(value, names, depth)]
    elif isinstance(node, ast.Name) and node.id in names and depth < DEPTH:
        texts = [text for value in names[node.id] for text in rendered(value, names, depth + 1)]
    return texts[:ALTERNATIVES]


def _joined(parts: list[ast.expr], names: dict[str, list[ast.expr]], depth: int) -> list[str]:
    choices = itertools.product(*(rendered(part, names, depth) for part in parts))
    return ["".join(choice) for choice in itertools.islice(choices, ALTERNATIVES)]


def faults_of_rule(rule: str) -> Iterator[str]:
    """Yield what is wrong with a rule, which follows "must"."""
    if rule == "x":
        return
    verb = re.split(r"[ ,]", rule)[0]
    if verb not in VERBS and not verb.startswith("x"):
        yield f"the rule must begin with a verb: {rule!r}"
    if "; " in rule:
        yield f"the rule holds a remedy: {rule!r}"


def faults_of_remedy(remedy: str, needed: bool) -> Iterator[str]:
    """Yield what is wrong with a remedy, which ends a message."""
    if needed and not remedy.strip():
        yield "the remedy is empty"
    if len(remedy) > LONGEST_REMEDY:
        yield f"the remedy has more than {LONGEST_REMEDY} characters: {remedy!r}"
    # The estimators' check of scikit-learn asks for the words "Reshape your data".
    if re.match(r"[A-Z][a-z]*([ .,:]|$)", remedy) and not remedy.startswith("Reshape your data"):
        yield f"the remedy begins with a capital: {remedy!r}"
    if remedy.endswith(".") and not remedy.endswith("..."):
        yield f"the remedy ends with a full stop: {remedy!r}"


def faults_of_text(text: str) -> Iterator[str]:
    """Yield what is wrong with a whole message."""
    doubled = re.search(r"\b([a-wyzA-Z]\w*) \1\b", text)
    if doubled:
        yield f"says {doubled[1]!r} twice: {text!r}"
    if "  " in text.strip("\n") and "\n" not in text:
        yield f"holds two blanks: {text!r}"
    if OLD_WORDS.search(text):
        yield f"holds an old word: {text!r}"
    if not _balanced(text):
        yield f"opens what it does not close: {text!r}"


def _balanced(text: str) -> bool:
    # Intervals such as [0, 1) close with another bracket than they open with.
    plain = re.sub(r"[\[(][^\[\]()]*, ?[^\[\]()]*[\])]", "", text)
    single = re.sub(r"(?<=\w)'(?=\w)", "", plain)
    quotes = single.count("'")
    if quotes % 2:
        quotes -= len(re.findall(r"(?<=s)'(?= |$|,)", single))
    brackets = all(plain.count(a) == plain.count(b) for a, b in ("()", "[]", "{}"))
    return brackets and not plain.count('"') % 2 and not plain.count("`") % 2 and not quotes % 2


@cache
def read_module(path: Path) -> tuple[list[Fault], int]:
    """Return the faults of a file, and how many messages were read."""
    text = path.read_text(encoding="utf-8")
    if "raise " not in text and "_check" not in text:
        return [], 0
    reader = Reader(text)
    faults = sorted(set(reader.faults()), key=lambda fault: (fault.line, fault.what))
    return faults, reader.found


def test_every_message_reads_well() -> None:
    lines = [
        f"src/sfumato/{path.relative_to(SOURCE)}:{fault.line} {fault.what}"
        for path in sorted(SOURCE.rglob("*.py"))
        for fault in read_module(path)[0]
    ]
    assert not lines, f"{len(lines)} messages to mend:\n" + "\n".join(lines)


def read(source: str) -> list[str]:
    """Return the faults of a line of source after ``n = 3``."""
    return [fault.what for fault in Reader(f"from sfumato import _check\nn = 3\n{source}\n").faults()]


GOOD = (
    '_check.refuse("n", f"be at most {n}", value, "pass fewer")',
    '_check.refuse("n", "be in [0, 1)", value, "pass Grid(exponent=...)")',
    '_check.refuse("n", "be given", None, "pass one")',
    '_check.refuse_type("n", "be a list", value, "pass [1, 2]")',
    '_check.refuse_state("batch", "be fresh", f"it was used {n} times", "draw another")',
    '_check.integer("n", n, minimum=1, remedy="each measures one query")',
    "_check.positive('n', n)",
    'raise ParameterError(f"the users\' column {n!r} is missing; name one that is there")',
)
BAD = {
    "phrase": [
        '_check.refuse("n", "be one", "none", "pass one")',
        '_check.refuse("n", "be one", 0, "pass one")',
        '_check.refuse("n", "be one", f"{n} of them", "pass one")',
        '_check.refuse("n", "be one", type(n).__name__, "pass one")',
        '_check.refuse("n", "be one", type(n), "pass one")',
    ],
    "verb": [
        '_check.refuse("n", "Be one", n, "pass one")',
        '_check.refuse("n", "one", n, "pass one")',
        'rule = f"{n}, or more than one"\nrule = "fewer than two"\n_check.refuse("n", rule, n, "pass one")',
    ],
    "holds a remedy": ['_check.refuse("n", "be one; pass one", n, "pass one")'],
    "missing": ['_check.refuse("n", "be one", n)', '_check.refuse_type("n", "be one", n)'],
    "empty": ['_check.refuse("n", "be one", n, "")', '_check.refuse("n", "be one", n, "y" if n else "")'],
    "more than": ['_check.refuse("n", "be one", n, "pass ' + "one more of it " * 12 + 'now")'],
    "capital": ['_check.refuse("n", "be one", n, "Pass one")'],
    "full stop": ['_check.refuse("n", "be one", n, "pass one.")', 'raise ValueError("no such thing.")'],
    "twice": ['_check.refuse("n", "be in the the list", n, "pass one")', 'raise ValueError("no no")'],
    "two blanks": ['_check.refuse("n", "be  one", n, "pass one")', 'raise ValueError("a " + " b")'],
    "old word": [
        'raise ValueError("a value is kept")',
        '_check.refuse_state("n", "be", "it was told", "go")',
    ],
    "opens": [
        '_check.refuse("n", "be (one", n, "pass one")',
        '_check.refuse("n", "be \'one", n, "pass one")',
        "raise ValueError(f'see {n!r} in \"tables')",
    ],
}


def test_the_reader_finds_what_is_wrong_and_nothing_else() -> None:
    for source in GOOD:
        assert read(source) == [], source
    for fault, sources in BAD.items():
        for source in sources:
            assert any(fault in what for what in read(source)), (fault, source, read(source))
    # Inside functions, with names of the function and of the module, and with names imported from the checks.
    nested = 'def f(v):\n    remedy = "Pass."\n    def g():\n        _check.refuse("n", "be one", v, remedy)'
    assert len(read(nested)) == 2
    direct = Reader('from sfumato._check import refuse\nrefuse("n", "be one", "none", "pass one")')
    assert [fault.line for fault in direct.faults()] == [2]


def test_the_reader_finds_every_call() -> None:
    """By the text: no call of a refusal escapes the walk over the scopes."""
    for room in ("mechanisms", "audit", "attacks"):
        for path in (SOURCE / room).rglob("*.py"):
            calls = path.read_text(encoding="utf-8").count("_check.refuse")
            assert read_module(path)[1] >= calls, path
