# SPDX-License-Identifier: MIT
"""Questions over the columns of allocations and events: expressions, which become plans of the library."""
import ctypes
import difflib
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence

from . import _layouts as layouts
from ._filters import nanoseconds
from ._library import Handle, InvalidError, call, encoded, library

_NUMBER, _TIME, _TRUTH = "number", "time", "truth"
# Columns of words whose ids are places in a list of the trace.
_LISTED = ("function", "free_function")
_WORDS = ("action", "end_kind")
# Texts that many stacks share: they may be shown, and a group is one of ids.
_CALLERS = ("caller", "free_caller")
#: Columns that rows have where they are named, by table.
TEXTS = {"allocation": (*_CALLERS, "stack", "free_stack"), "event": ("caller", "stack")}


class Expression:
    """A value of each row: a column, or an operation on others. It has the operators of Python; & | ~ join conditions."""

    def __init__(self, operation: str, operands: Sequence["Expression"], kind: str, value: Any = None):
        self._operation, self._operands, self._kind, self._value = operation, tuple(operands), kind, value
        self._name: Optional[str] = None

    # Conditions are no truth of Python's: `a == b` makes one.
    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise InvalidError("a condition on rows is neither true nor false here: join conditions by & | ~, each in parentheses")

    def _with(self, operation: str, other: Any, kind: Optional[str] = None, is_turned: bool = False) -> "Expression":
        right = _literal(other, self)
        if self._kind != right._kind:
            raise InvalidError(f"{operation}: one side is a {self._kind}, the other one a {right._kind}")
        return Expression(operation, (right, self) if is_turned else (self, right), kind or self._kind)

    def __eq__(self, other: Any) -> Any:
        return self._with("==", other, _TRUTH)

    def __ne__(self, other: Any) -> Any:
        return self._with("!=", other, _TRUTH)

    def __lt__(self, other: Any) -> "Expression":
        return self._with("<", other, _TRUTH)

    def __le__(self, other: Any) -> "Expression":
        return self._with("<=", other, _TRUTH)

    def __gt__(self, other: Any) -> "Expression":
        return self._with(">", other, _TRUTH)

    def __ge__(self, other: Any) -> "Expression":
        return self._with(">=", other, _TRUTH)

    def __add__(self, other: Any) -> "Expression":
        return self._with("+", other)

    def __radd__(self, other: Any) -> "Expression":
        return self._with("+", other, is_turned=True)

    def __sub__(self, other: Any) -> "Expression":
        return self._with("-", other)

    def __rsub__(self, other: Any) -> "Expression":
        return self._with("-", other, is_turned=True)

    def __mul__(self, other: Any) -> "Expression":
        return self._with("*", other)

    def __rmul__(self, other: Any) -> "Expression":
        return self._with("*", other, is_turned=True)

    def __floordiv__(self, other: Any) -> "Expression":
        return self._with("/", other)

    def __mod__(self, other: Any) -> "Expression":
        return self._with("%", other)

    def __lshift__(self, other: Any) -> "Expression":
        return self._with("<<", other)

    def __rshift__(self, other: Any) -> "Expression":
        return self._with(">>", other)

    def __xor__(self, other: Any) -> "Expression":
        return self._with("^", other)

    def __and__(self, other: Any) -> "Expression":
        return self._with("&&" if self._kind == _TRUTH else "&", other)

    def __or__(self, other: Any) -> "Expression":
        return self._with("||" if self._kind == _TRUTH else "|", other)

    def __invert__(self) -> "Expression":
        return Expression("!", [self], _TRUTH)

    def is_absent(self) -> "Expression":
        """Whether the row has no such value, as a live block has no end."""
        return Expression("is absent", [self], _TRUTH)

    def if_absent(self, value: Any) -> "Expression":
        """The value, or another one where it is absent."""
        return Expression("if absent", [self, _literal(value, self)], self._kind)

    def is_in(self, values: Iterable[Any]) -> "Expression":
        """Whether it is one of the values."""
        found = [self == value for value in values]
        if not found:
            raise InvalidError("is_in has no values")
        made: Expression = found[0]
        for one in found[1:]:
            made = made | one
        return made

    def lookup(self, values: Sequence[int]) -> "Expression":
        """The number at this place of the list: a fact about each stack, thread or other id, found before. It is absent behind the end of the list."""
        numbers = list(values)
        if any(isinstance(number, float) or not 0 <= number < 1 << 64 for number in numbers):
            raise InvalidError("lookup has numbers of 64 bits")
        return Expression("lookup", [self], _NUMBER, numbers)

    def as_number(self) -> "Expression":
        """A time as a number of nanoseconds."""
        return Expression("as number", [self], _NUMBER)

    def as_time(self) -> "Expression":
        """A number of nanoseconds as a time."""
        return Expression("as time", [self], _TIME)

    def named(self, name: str) -> "Expression":
        """The same, under this name in the result."""
        made = Expression(self._operation, self._operands, self._kind, self._value)
        made._name = name
        return made

    def sum(self) -> "Aggregate":
        return Aggregate("sum", self)

    def min(self) -> "Aggregate":
        return Aggregate("least", self, "min")

    def max(self) -> "Aggregate":
        return Aggregate("greatest", self, "max")

    def mean(self) -> "Aggregate":
        return Aggregate("average", self, "mean")

    def _column_name(self) -> Optional[str]:
        return str(self._value) if self._operation == "column" else None


class Aggregate:
    """A number over the rows of each group."""

    def __init__(self, kind: str, of: Optional[Expression], word: str = "", name: Optional[str] = None):
        self._kind, self._of, self._word = kind, of, word or kind
        column = of._column_name() if of is not None else None
        self._name = name or (f"{self._word}_{column}" if column else self._word)

    def named(self, name: str) -> "Aggregate":
        """The same, under this name in the result."""
        return Aggregate(self._kind, self._of, self._word, name)


def col(name: str) -> Expression:
    """A column of the rows. Times are those whose names end in _ns."""
    return Expression("column", [], _TIME if name.endswith("_ns") else _NUMBER, name)


def count() -> Aggregate:
    """The number of rows of each group."""
    return Aggregate("count", None)


def when(condition: Expression, then: Any, otherwise: Any) -> Expression:
    """One value where the condition is true, another one where it is false."""
    like = next((value for value in (then, otherwise) if isinstance(value, Expression)), None)
    one, other = _literal(then, like), _literal(otherwise, like)
    return Expression("?:", [condition, one, other], one._kind)


def _literal(value: Any, beside: Optional[Expression]) -> Expression:
    """A value of Python as the other side of an operation takes it."""
    if isinstance(value, Expression):
        return value
    if beside is not None and beside._kind == _TIME:
        return Expression("time", [], _TIME, nanoseconds(value))
    if isinstance(value, str) and beside is not None and beside._column_name() in _LISTED + _WORDS:
        return Expression("word", [beside], _NUMBER, value)
    if isinstance(value, bool) or not isinstance(value, int) or not -(1 << 63) <= value < 1 << 64:
        raise InvalidError(f"{value!r} is no number of 64 bits" + (": texts are compared with columns of words" if isinstance(value, str) else ""))
    return Expression("number", [], _NUMBER, value)


def _columns_of(item: Any) -> Iterator[str]:
    """Names of the columns that an item asks for."""
    of = item._of if isinstance(item, Aggregate) else item
    if isinstance(of, Expression):
        if of._operation == "column":
            yield str(of._value)
        for operand in of._operands:
            yield from _columns_of(operand)


def check_columns(table: str, number: int, names: Iterable[str], known: Callable[[], Iterable[str]]) -> None:
    """Refuse a name that no column of the table has: only the library knows all. `known` are names that one may have meant."""
    pointer = ctypes.c_void_p()
    call("xheap_plan_new", number, ctypes.byref(pointer))
    with Handle("the plan", pointer, library().xheap_plan_free).use() as plan:
        # A plan that has refused a column refuses all others.
        wrong = next((name for name in names if library().xheap_plan_column(plan, encoded(name, "a column")) == layouts.XHEAP_NONE), None)
    if wrong is None:
        return
    nearest = difflib.get_close_matches(wrong, list(known()), 1)
    raise InvalidError(f"{table}s have no column {wrong!r}" + (f"; the nearest is {nearest[0]!r}" if nearest else ""))


class Plan:
    """A question, as `Trace.query` takes its parts."""

    def __init__(self, table: str, select: Sequence[Any], where: Optional[Expression], by: Sequence[Any], order: Sequence[str], limit: Optional[int], skip: int):
        self.is_grouped = bool(by) or any(isinstance(item, Aggregate) for item in select)
        self.table = table
        self.keys = [col(item) if isinstance(item, str) else item for item in by]
        self.items = [col(item) if isinstance(item, str) else item for item in select]
        self.where, self.order = where, order
        for name, number in (("limit", limit), ("skip", skip)):
            if number is not None and (isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 1 << 64):
                raise InvalidError(f"{name} is a number of rows, not {number!r}")
        self.limit, self.skip = (1 << 64) - 1 if limit is None else limit, skip
        if where is not None and (not isinstance(where, Expression) or where._kind != _TRUTH):
            raise InvalidError("where is a condition on columns, such as xheap.col(\"size\") > 4096")
        wrong = next((item for item in self.items if isinstance(item, Aggregate) != self.is_grouped), None)
        if wrong is not None:
            raise InvalidError("with `by` or a sum, everything in `select` is a sum over rows, such as xheap.col(\"size\").sum() or xheap.count()")
        for item in [*self.keys, *self.items]:
            if not isinstance(item, (Expression, Aggregate)):
                raise InvalidError(f"a column is its name, or an expression, not {item!r}")
        if self.is_grouped and not self.items:
            self.items = [count()]
        caller = next((key._column_name() for key in self.keys if isinstance(key, Expression) and key._column_name() in _CALLERS), None)
        if caller:
            raise InvalidError(f"by={caller!r}: rows are grouped by ids, and several stacks have one caller: heap(by=\"function\") has the sums by caller, by=\"stack_id\" those by stack")
        names = [item._name or (item._column_name() if isinstance(item, Expression) else None) for item in [*self.keys, *self.items]]
        for name in self.order:
            if name.lstrip("-") not in names:
                raise InvalidError(f"the result has no column {name.lstrip('-')} to order by: it has {', '.join(filter(None, names))}")

    def columns(self) -> List[str]:
        """Names of all columns that the question is about."""
        return [name for item in [*self.keys, *self.items, self.where] for name in _columns_of(item)]

    def made(self, number: int, functions: Callable[[str], List[int]]) -> Handle:
        """The library's plan. `functions` finds the ids of those with a name."""
        pointer = ctypes.c_void_p()
        call("xheap_plan_new", number, ctypes.byref(pointer))
        handle = Handle("the plan", pointer, library().xheap_plan_free)
        with handle.use() as plan:
            builder = _Builder(plan, functions)
            names: Dict[str, int] = {}
            if self.where is not None:
                library().xheap_plan_filter(plan, builder.node(self.where))
            for key in self.keys:
                names[key._name or key._column_name() or ""] = library().xheap_plan_key(plan, builder.node(key), _name(key))
            for item in self.items:
                if isinstance(item, Aggregate):
                    node = layouts.XHEAP_NONE if item._of is None else builder.node(item._of)
                    names[item._name] = library().xheap_plan_aggregate(plan, item._kind.encode(), node, encoded(item._name, "a name"))
                else:
                    names[item._name or item._column_name() or ""] = library().xheap_plan_output(plan, builder.node(item), _name(item))
            for name in self.order:
                library().xheap_plan_order(plan, names[name.lstrip("-")], name.startswith("-"))
            library().xheap_plan_limit(plan, self.skip, self.limit)
        return handle


def _name(item: Expression) -> Optional[bytes]:
    return encoded(item._name, "a name") if item._name else None


class _Builder:
    """Makes nodes of expressions."""

    def __init__(self, plan: Any, functions: Callable[[str], List[int]]):
        self._plan, self._functions = plan, functions

    def _apply(self, operation: str, *nodes: int) -> int:
        made: int = library().xheap_plan_apply(self._plan, operation.encode(), *nodes, *[layouts.XHEAP_NONE] * (3 - len(nodes)))
        return made

    def _of_function(self, expression: Expression) -> Optional[int]:
        """A comparison with the name of a function: with each function of this name."""
        if expression._operation not in ("==", "!=") or expression._operands[1]._operation != "word" or expression._operands[0]._column_name() not in _LISTED:
            return None
        column = self.node(expression._operands[0])
        found = [self._apply("==", column, library().xheap_plan_number(self._plan, number)) for number in self._functions(expression._operands[1]._value)]
        made = found[0] if found else self._apply("==", column, library().xheap_plan_number(self._plan, layouts.XHEAP_NONE))
        for one in found[1:]:
            made = self._apply("||", made, one)
        return made if expression._operation == "==" else self._apply("!", made)

    def node(self, expression: Expression) -> int:
        operation, value = expression._operation, expression._value
        made: Optional[int] = self._of_function(expression)
        if made is not None:
            return made
        if operation == "column":
            made = library().xheap_plan_column(self._plan, encoded(value, "a column"))
        elif operation == "number":
            made = library().xheap_plan_number(self._plan, value & (1 << 64) - 1)
        elif operation == "time":
            made = library().xheap_plan_time(self._plan, value)
        elif operation == "word":
            made = library().xheap_plan_word(self._plan, self.node(expression._operands[0]), encoded(value, "a word"))
        elif operation == "lookup":
            made = library().xheap_plan_lookup(self._plan, self.node(expression._operands[0]), (ctypes.c_uint64 * len(value))(*value), len(value))
        else:
            made = self._apply(operation, *map(self.node, expression._operands))
        assert made is not None
        return made
