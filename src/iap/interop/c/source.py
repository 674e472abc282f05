"""The parts of a C file: sizes, constant arrays, fields of the state, and functions, each added once."""

from dataclasses import dataclass
from string import Template

import numpy as np

COLUMNS = 120  # of a line with numbers


@dataclass(frozen=True)
class Field:
    """An array or a number in a struct: its C type, its name, its length (0 for a number), and a comment."""

    kind: str
    name: str
    count: int = 0
    comment: str = ""

    def declaration(self) -> str:
        """The line in the struct."""
        length = f"[{self.count}]" if self.count else ""
        return f"    {self.kind} {self.name}{length};" + (f" /* {self.comment} */" if self.comment else "")


class Source:
    """A C file that emitters add to; names in it are static, so they need no prefix.

    Attributes:
        name: the C name of the policy, the prefix of everything public.
        pixel: the C type of a number of the image, "uint8_t" or "float".
        flips: whether images are also read from right to left, for a symmetric policy.
        sizes: the constants.
    """

    def __init__(self, name: str, pixel: str, *, flips: bool = False) -> None:
        self.name, self.pixel, self.flips = name, pixel, flips
        self.memory_fields: list[Field] = []
        self.work_fields: list[Field] = []
        self.sizes: dict[str, int] = {}
        self._arrays: dict[str, str] = {}
        self._code: dict[str, None] = {}

    def size(self, name: str, value: int) -> None:
        """A constant; the same name must have the same value."""
        if self.sizes.setdefault(name, int(value)) != value:
            raise ValueError(f"size {name} cannot be {value}: it is {self.sizes[name]} already")

    def floats(self, name: str, values: np.ndarray) -> None:
        """A constant array of float."""
        numbers = [float_literal(x) for x in np.asarray(values, np.float32).ravel()]
        self._arrays[name] = f"static const float {name}[{len(numbers)}] = {{\n{wrapped(numbers)}\n}};"

    def integers(self, name: str, values: np.ndarray, kind: str = "uint16_t") -> None:
        """A constant array of integers."""
        numbers = [str(int(x)) for x in np.asarray(values).ravel()]
        self._arrays[name] = f"static const {kind} {name}[{len(numbers)}] = {{\n{wrapped(numbers)}\n}};"

    def code(self, text: str, **names: object) -> None:
        """A function, with $names replaced; the same text is added once."""
        self._code[filled(text.strip("\n"), **names)] = None

    def memory(self, kind: str, name: str, count: int = 0, comment: str = "") -> None:
        """A field of the memory, which a symmetric policy has twice."""
        self.memory_fields.append(Field(kind, name, count, comment))

    def work(self, kind: str, name: str, count: int) -> None:
        """A field of the state that a policy has once: an image that is kept, or working memory."""
        self.work_fields.append(Field(kind, name, count))

    def body(self) -> str:
        """Sizes, arrays and functions."""
        sizes = ",\n".join(f"    {name} = {value}" for name, value in self.sizes.items())
        return "\n\n".join([f"enum {{\n{sizes}\n}};", *self._arrays.values(), *self._code])


def float_literal(x: float | np.floating) -> str:
    """A float32 constant in C, exact."""
    text = str(np.float32(x))
    if text in ("nan", "inf", "-inf"):
        raise ValueError(f"parameters must be finite to become C constants, not {text}")
    return f"{text}f"


def wrapped(items: list[str]) -> str:
    """Items separated by commas, in lines of limited length."""
    lines, line = [], "   "
    for item in items:
        if len(line) + len(item) + 2 > COLUMNS:
            lines.append(line)
            line = "   "
        line += f" {item},"
    return "\n".join([*lines, line.rstrip(",")])


def filled(text: str, **names: object) -> str:
    """The text with $names replaced."""
    return Template(text).substitute(names)


def flip_names(source: Source) -> dict[str, str]:
    """How functions take and give `flipped`, and the column of a pixel."""
    if not source.flips:
        return {"flip_argument": "", "flip_value": "", "column": "x"}
    return {"flip_argument": ", int flipped", "flip_value": ", flipped", "column": "(flipped ? WIDTH - 1 - x : x)"}


def pixel_scale(source: Source) -> tuple[str, str]:
    """The factor and the offset that bring a pixel to the range around 0."""
    return ("(1.0f / 255.0f)", " - 0.5f") if source.pixel == "uint8_t" else ("1.0f", "")
