"""Writes mutants into a copy of the sources, all of them at once: the variable SVML_MUTANT says which one acts.

    python mutate.py TREE EVERY LEFT_OUT FILE..

TREE is a copy of the repository; of the mutants of the files (paths in TREE) every EVERY-th is written, but for those
whose numbers are in LEFT_OUT, separated by commas. Prints a list in JSON: number, file, line, what was changed, and the
bytes where it is now. `study/strength.py mutants` calls it. One build serves all mutants, where a build for each would
take hours.

The kinds are those of cargo-mutants: the value of a function, a binary or unary operator, the guard of an arm.
"""

import json
import sys
from pathlib import Path

import tree_sitter_rust
from tree_sitter import Language, Parser

OPERATORS = {
    "==": ["!="],
    "!=": ["=="],
    "&&": ["||"],
    "||": ["&&"],
    "<": ["==", ">", "<="],
    ">": ["==", "<", ">="],
    "<=": [">"],
    ">=": ["<"],
    "+": ["-", "*"],
    "-": ["+", "/"],
    "*": ["+", "/"],
    "/": ["%", "*"],
    "%": ["/", "+"],
    "+=": ["-=", "*="],
    "-=": ["+=", "/="],
    "*=": ["+=", "/="],
    "/=": ["%=", "*="],
}
# Values of functions by what they return.
VALUES = {
    "bool": ["true", "false"],
    "f64": ["0.0", "1.0", "-1.0"],
    "usize": ["0", "1"],
    "u64": ["0", "1"],
    "u32": ["0", "1"],
    "u8": ["0", "1"],
    "i32": ["0", "1", "-1"],
    "String": ["String::new()", '"xyzzy".to_owned()'],
    "Result<()>": ["Ok(())"],
    "Result<f64>": ["Ok(0.0)", "Ok(1.0)"],
    "Result<bool>": ["Ok(true)", "Ok(false)"],
    "Result<usize>": ["Ok(0)", "Ok(1)"],
}
# Where no call may stand.
CONSTANT = {"const_item", "static_item", "array_type", "const_block", "attribute_item", "enum_variant", "type_arguments"}


def mutants_of(source):
    """All mutants of a file: (line, words, first byte, end, text in place of them)."""
    # Tests are the last thing in a file.
    end = source.find(b"\n#[cfg(test)]\nmod tests")
    tree = Parser(Language(tree_sitter_rust.language())).parse(source if end < 0 else source[: end + 1])
    found = []

    def text(node):
        return source[node.start_byte : node.end_byte].decode()

    def add(node, words, replacement, span=None):
        start, stop = span or (node.start_byte, node.end_byte)
        found.append((node.start_point[0] + 1, words, start, stop, replacement))

    def choice(mutant, own):
        return f"(if crate::mutants::on(MUTANT) {{ {mutant} }} else {{ {own} }})"

    def look(node, function):
        if node.type in CONSTANT:
            return
        if node.type == "function_item":
            if "const" in [child.type for modifiers in node.children for child in modifiers.children]:
                return
            function = text(node.child_by_field_name("name"))
            values_of(node, function)
        if function:
            operators_of(node, function)
        for child in node.children:
            look(child, function)

    def values_of(node, function):
        body, returned = node.child_by_field_name("body"), node.child_by_field_name("return_type")
        if body is None or body.named_child_count == 0:
            return
        kind = text(returned) if returned else "()"
        values = [""] if kind == "()" else VALUES.get(kind, [])
        values = ["None"] if kind.startswith("Option<") else ["Vec::new()"] if kind.startswith("Vec<") else values
        for value in values:
            inserted = f" if crate::mutants::on(MUTANT) {{ return {value}; }}"
            add(node, f"{function} returns {value or 'at once'}", inserted, (body.start_byte + 1,) * 2)

    def operators_of(node, function):
        if node.type in ("binary_expression", "compound_assignment_expr"):
            left, operator, right = (node.child_by_field_name(name) for name in ("left", "operator", "right"))
            if "let_condition" in (left.type, right.type):
                return
            for other in OPERATORS.get(text(operator), []):
                before, after = source[node.start_byte : operator.start_byte], source[operator.end_byte : node.end_byte]
                add(node, f"{text(operator)} is {other} in {function}", choice(before.decode() + other + after.decode(), text(node)))
        elif node.type == "unary_expression" and node.children[0].type in ("!", "-"):
            sign = node.children[0]
            # The sign of a literal may be part of a pattern.
            if node.children[1].type not in ("integer_literal", "float_literal"):
                rest = source[sign.end_byte : node.end_byte].decode()
                add(node, f"no {text(sign)} in {function}", choice(rest, text(node)))
        elif node.type == "match_pattern" and (guard := node.child_by_field_name("condition")):
            if guard.type not in ("let_condition", "let_chain"):
                for value in ("true", "false"):
                    add(guard, f"a guard is {value} in {function}", choice(value, text(guard)))

    look(tree.root_node, None)
    return found


def main():
    tree, every, left_out, *files = sys.argv[1:]
    left_out = {int(number) for number in left_out.split(",") if number}
    written, number = [], 0
    for file in files:
        path = Path(tree) / file
        source = path.read_bytes()
        chosen = []
        for mutant in mutants_of(source):
            number += 1
            # Of two that would be within each other the first is written.
            _, _, start, end, _ = mutant
            free = all(end <= other[2] or start >= other[3] for _, other in chosen)
            if number % int(every) == 0 and number not in left_out and free:
                chosen.append((number, mutant))
        out, at = b"", 0
        for id_, (line, words, start, end, text) in sorted(chosen, key=lambda one: (one[1][2], one[1][3])):
            out += source[at:start]
            begin = len(out)
            out += text.replace("MUTANT", str(id_)).encode()
            at = end
            written.append({"id": id_, "file": file, "line": line, "words": words, "bytes": [begin, len(out)]})
        path.write_bytes(out + source[at:])
    print(json.dumps({"all": number, "written": written}))


if __name__ == "__main__":
    main()
