#!/usr/bin/python3 -E
"""scripts/rename.py [--check] [--again] [LIST]: renames types and functions as a list says, scripts/renames.txt by default, on any
branch. A line is `Old New file-or-glob...`: the whole word Old becomes New in these files. `Class::Old New file-or-glob...` leaves
out `Other::Old` in these files, and renames `Class::Old` in all others. `old() new() file-or-glob...` is for functions: the word
counts only before a parenthesis. Lines are applied in their order; those that begin with `#` or `//` are comments.

Strings stay as they are. So does a word of a comment that may be plain English, as at the beginning of a sentence, and a word of a
page (.md) outside `code`. Nothing is written where a new name is already a word in one of the files that a line names or changes,
but for functions, since several classes may have one of the same name. Files that were changed are formatted:
by clang-format-14, pages to 100 columns."""
import argparse
import fnmatch
import os
import re
import subprocess
import sys
import textwrap

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PIECES = re.compile(r'//[^\n]*(?:\n\s*//[^\n]*)*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.S)
QUALIFIED = r"(?<![\w:~])(?P<of>(?:\w+::)*?)(?P<tilde>~?)"


def begins_a_sentence(text, at):
    return re.search(r"(?:^|[.:!?])[\s/<*]*$", text[:at]) is not None


def may_be_english(text, found):
    """Whether a word of a comment may be no name of the code."""
    word, before, behind = found["old"], text[:found.start()], text[found.end():]
    if re.search(r"[a-z\d][A-Z]|_", word) or found["of"] or behind[:2] in ("()", "::") or before.count("`") % 2:
        return False
    return word[0].islower() or begins_a_sentence(text, found.start())


class Line:
    def __init__(self, text):
        old, new, *self.globs = text.split()
        self.is_function, self.new = new.endswith("()"), new.removesuffix("()")
        scope, _, self.old = old.removesuffix("()").rpartition("::")
        self.scope = scope.split("::") if scope else []
        self.word = re.compile(QUALIFIED + rf"(?P<old>{self.old})(?P<own>::~?{self.old})?(?!\w)" + (r"(?=\()" if self.is_function else ""))
        self.text = f"{old} -> {new}"

    def lists(self, path):
        return any(fnmatch.fnmatchcase(path, glob) for glob in self.globs)

    def means(self, found, at_home):
        of = found["of"].split("::")[:-1]
        if not self.scope or not of:
            return at_home
        shorter = min(len(of), len(self.scope))
        return of[-shorter:] == self.scope[-shorter:] and (at_home or len(of) >= len(self.scope))

    def replace(self, path, text):
        """The text with new names, how many, and how many words of comments were left."""
        at_home, count, left = self.lists(path), 0, 0

        def in_piece(piece, is_comment=False):
            def one(found):
                nonlocal count, left
                if not self.means(found, at_home):
                    return found[0]
                if is_comment and may_be_english(piece, found):
                    left += 1
                    return found[0]
                count += 1
                return found["of"] + found["tilde"] + self.new + (found["own"] or "").replace(self.old, self.new)
            return self.word.sub(one, piece)

        if path.endswith(".md"):
            return re.sub(r"`[^`]+`", lambda code: in_piece(code[0]), text), count, left
        done, at = [], 0
        for piece in PIECES.finditer(text):
            done += [in_piece(text[at:piece.start()]), in_piece(piece[0], True) if piece[0].startswith("/") else piece[0]]
            at = piece.end()
        done.append(in_piece(text[at:]))
        return "".join(done), count, left

    def is_new_in(self, text):
        return re.search(rf"(?<!\w){self.new}(?!\w)", PIECES.sub("", text)) is not None


def wrapped(page):
    """A page whose paragraphs and items are at most 100 columns wide."""
    done, group, code_block = [], [], False
    for line in [*page.split("\n"), ""]:
        if not line.strip() or code_block or re.match(r"\s*(?:[-*] |\d+\. |#|\||```)", line):
            indent = re.match(r"\s*(?:(?:[-*]|\d+\.) +)?", group[0])[0] if group else ""
            if any(len(each) > 100 for each in group) and not re.match(r"[#|]|\s*```|    ", group[0]) and not code_block:
                group = textwrap.wrap(" ".join(each.strip() for each in group)[len(indent.lstrip()):], 100, initial_indent=indent,
                                      subsequent_indent=" " * len(indent), break_long_words=False, break_on_hyphens=False)
            done, group = done + group, []
        code_block ^= line.lstrip().startswith("```")
        group.append(line)
    return "\n".join(done)


def read_files():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.cc", "*.h", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True)
    texts = {}
    for path in listed.stdout.split():
        if os.path.isfile(os.path.join(ROOT, path)):
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                texts[path] = file.read()
    return texts


def apply(line, texts, again):
    """What to say of the line, and whether it is a mistake; changes `texts`."""
    changed, count, left = {}, 0, []
    for path, text in texts.items():
        if line.old in text and (line.scope or line.lists(path)):
            after, here, words_left = line.replace(path, text)
            if here:
                changed[path], count = after, count + here
            if words_left:
                left.append(path)
    new_in = [path for path in texts if (path in changed or line.lists(path)) and not path.endswith(".md") and line.is_new_in(texts[path])]
    if not changed:
        return ("applied" if new_in else "WARNING: matches nothing"), False
    if new_in and not (again or line.is_function):
        return f"REFUSED: {line.new} is already a word in {', '.join(new_in)}", True
    texts.update(changed)
    return f"{count} in {len(changed)} files" + (f"; comments to look at: {', '.join(left)}" if left else ""), False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="changes nothing; fails if a line is still to be applied")
    parser.add_argument("--again", action="store_true", help="for a branch with code from before and after: new names may be there")
    parser.add_argument("list", nargs="?", metavar="LIST", default=os.path.join(ROOT, "scripts/renames.txt"))
    arguments = parser.parse_args()
    texts = read_files()
    before, failed = dict(texts), False
    with open(arguments.list, encoding="utf-8") as file:
        lines = [Line(line) for line in file.read().splitlines() if line.strip() and not line.startswith(("#", "//"))]
    for line in lines:
        says, mistake = apply(line, texts, arguments.again)
        failed = failed or mistake
        if not (arguments.check and says == "applied"):
            print(f"{line.text}: {says}")
    touched = [path for path, text in texts.items() if text != before[path]]
    if arguments.check or failed:
        return 1 if failed or touched else 0
    for path in touched:
        with open(os.path.join(ROOT, path), "w", encoding="utf-8") as file:
            file.write(wrapped(texts[path]) if path.endswith(".md") else texts[path])
    if code := [path for path in touched if not path.endswith(".md")]:
        subprocess.run(["clang-format-14", "-i", *code], cwd=ROOT, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
