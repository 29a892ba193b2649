"""Docstrings on their way into the reference: what the sources write for a reader of Python becomes Markdown.

A role such as ``:func:`` becomes a link where the reference has the name, else code. A doctest, which Markdown would
take for a quotation, becomes code. Parameters that share a line get one each.
"""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe

ROLE = re.compile(r":(?P<role>class|func|meth|mod|data):`(?P<name>[^`]+)`")
DOCTEST = re.compile(r"^(?P<indent> *)>>> .*\n?(?:(?P=indent)\S.*\n?)*", re.MULTILINE)
SHARED = re.compile(r"^    (?P<names>\w+(?:, \w+)+): (?P<text>.*)$", re.MULTILINE)


class Markdown(griffe.Extension):
    """Rewrites every docstring that is collected."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Convert the docstring of a module, a class, a function or an attribute."""
        if obj.docstring is None:
            return
        text = SHARED.sub(lambda found: one_by_one(found, obj), obj.docstring.value)
        text = DOCTEST.sub(fence, text)
        obj.docstring.value = ROLE.sub(lambda found: link(found, obj), text)


def one_by_one(found: re.Match[str], obj: griffe.Object) -> str:
    """The line once for each name, if they are parameters of this function."""
    names = found["names"].split(", ")
    if not isinstance(obj, griffe.Function) or not all(name in obj.parameters for name in names):
        return found[0]
    return "\n".join(f"    {name}: {found['text']}" for name in names)


def fence(found: re.Match[str]) -> str:
    """The doctest as a block of code."""
    block = f"```pycon\n{textwrap.dedent(found[0]).rstrip()}\n```\n"
    return textwrap.indent(block, found["indent"])


def link(found: re.Match[str], obj: griffe.Object) -> str:
    """A link to the name, which without dots is one of the same class (``meth``) or of the same module."""
    name = found["name"]
    if "." not in name:
        scope = obj.module if found["role"] != "meth" or obj.is_module else obj if obj.is_class else obj.parent
        name = f"{scope.path}.{name}"
    return f'<autoref optional identifier="{name}"><code>{found["name"]}</code></autoref>'
