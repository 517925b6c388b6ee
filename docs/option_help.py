"""An extension of the API reference: the help of an option is the docstring of its field."""

from __future__ import annotations

import ast
from typing import Any

import griffe


class OptionHelp(griffe.Extension):
    """Makes the help of an option, the second argument of `option`, the docstring of its field."""

    def on_attribute_instance(self, *, node: Any, attr: griffe.Attribute, **_: Any) -> None:
        """Read the help from the syntax tree; a call of `option` says no more than that."""
        value = getattr(node, "value", None)
        if not isinstance(value, ast.Call) or getattr(value.func, "id", "") != "option" or len(value.args) < 2:
            return
        attr.docstring = griffe.Docstring(_text(value.args[1], attr), parent=attr)
        attr.value = ast.unparse(value.args[0])


def _text(node: ast.AST, attr: griffe.Attribute) -> str:
    """Return the text of an expression: a string, constants of the module, or these put together."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr | ast.BinOp):
        return "".join(_text(part, attr) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr))
    if isinstance(node, ast.FormattedValue):
        return _text(node.value, attr)
    if isinstance(node, ast.Name) and node.id in attr.module.members and attr.module[node.id].is_attribute:
        return _text(ast.parse(str(attr.module[node.id].value), mode="eval").body, attr)
    return ast.unparse(node)
