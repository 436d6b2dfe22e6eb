"""The page on the kernel lists the rules; `python -m tests.kernel.test_page` rewrites it."""

from pathlib import Path

from cvxleak.kernel import claims
from cvxleak.kernel.terms import RULES

PAGE = Path(__file__).parents[2] / "docs" / "certificates.md"
BEGIN, END = "<!-- rules -->\n", "<!-- end of rules -->\n"


def table() -> str:
    """Return a row for each rule: what it gives, its keys, what it needs, and what it says."""
    assert claims.LOADED
    lines = ["| rule | gives | takes | needs | says |", "|---|---|---|---|---|"]
    # Not in the order of imports, which depends on the tests that ran before.
    for name, rule in sorted(RULES.items(), key=lambda item: ("JVB".index(item[1].gives), item[0])):
        takes = ", ".join(
            f"`{key}`{'?' if part.optional else ''}: {part.says}"
            for key, part in rule.signature().items()
        )
        says = (rule.__doc__ or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
        says = " ".join(says.split())
        lines.append(f"| `{name}` | {rule.gives} | {takes} | {', '.join(rule.when)} | {says} |")
    return "\n".join(lines) + "\n"


def test_the_page_lists_the_rules():
    text = PAGE.read_text()
    assert text[text.index(BEGIN) + len(BEGIN) : text.index(END)] == table()


def test_every_rule_says_what_it_concludes():
    for name, rule in RULES.items():
        assert rule.__doc__, name
        assert rule.gives in {"J", "V", "B"}, name


if __name__ == "__main__":
    old = PAGE.read_text()
    start, end = old.index(BEGIN) + len(BEGIN), old.index(END)
    PAGE.write_text(old[:start] + table() + old[end:])
